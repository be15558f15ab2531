"""Planner worker. A topic of a decided batch was deleted and created again, and a person said yes.

The rows that were in it are gone. What is still open is aborted, so that the batch can be written
again. A transaction that was committed is lost if it wrote to nothing but such topics. If it also
wrote to others, its rows are visible there, and it is not written again: that would double them.
"""

from collections.abc import Container, Sequence

from spark_eos._deadline import Deadline
from spark_eos._protocol.transactions.fate import Fate
from spark_eos._protocol.transactions.outcome import Outcome
from spark_eos._protocol.transactions.transaction import TransactionRecord
from spark_eos._session import Session


def give_up_lost(
    session: Session,
    records: Sequence[TransactionRecord],
    replaced: Container[str],
    deadline: Deadline,
) -> dict[str, Fate]:
    """The fate of each decided transaction that wrote to a topic that was replaced."""
    lost = [r for r in records if any(p.topic in replaced for p in r.partitions)]
    answers = session.cluster.coordinator.end(
        [r.identity for r in lost], committed=False, deadline=deadline
    )
    found: dict[str, Fate] = {}
    asked = []
    for record in lost:
        name = record.identity.transactional_id
        elsewhere = [p for p in record.partitions if p.topic not in replaced]
        if elsewhere and answers[name].outcome is not Outcome.DONE:
            asked.append((name, elsewhere))
        else:
            found[name] = Fate.ABORTED
    return found | (session.cluster.fates(asked, deadline) if asked else {})
