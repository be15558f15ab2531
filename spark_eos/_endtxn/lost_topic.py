"""Planner worker. Step 1, after a person accepted that a decided batch has lost a topic.

Open transactions are aborted, so that the batch can be written again. A committed transaction is
lost if it wrote only to replaced topics. If it also wrote to others, its rows are visible there. It
is not written again, because that would double these rows.
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
    """Abort decided transactions that wrote to a replaced topic, and return their fates."""
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
