"""Commit worker. Step 6: complete. EndTxn(commit) to every transaction of a decided batch.

Returns only when each one is known to be committed. Where it raises, the decision stands: `abort`
and the next start find it in the log and go on from there.
"""

from collections.abc import Sequence

from spark_eos._deadline import Deadline
from spark_eos._endtxn.commit import commit_decided
from spark_eos._protocol.transactions.fate import Fate
from spark_eos._protocol.transactions.transaction import TransactionRecord
from spark_eos._session import Session
from spark_eos.errors import RetriableError, TransactionLostError


def complete(session: Session, records: Sequence[TransactionRecord], deadline: Deadline) -> None:
    """Commit the transactions of `records`, all of them."""
    found = commit_decided(session, records, deadline)
    for record in records:
        name = record.identity.transactional_id
        fate = found.fates[name]
        if fate is Fate.COMMITTED:
            continue
        where = f"batch {record.batch_id} of query {record.query_id} is decided, and {name}"
        if fate is Fate.ABORTED:
            raise TransactionLostError(
                f"{where} was aborted before it could be committed ({found.refusals[name]}): it"
                " timed out, or another driver took the id over. Start the query again: recovery"
                " writes what was lost"
            )
        raise RetriableError(
            f"{where} is not known to be committed ({found.refusals[name]}, its records are"
            f" {fate.value}). Start the query again: recovery asks once more"
        )
