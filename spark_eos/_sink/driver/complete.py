"""Commit worker. Step 6: complete. Send EndTxn(commit) for each transaction of a decided batch.

An error does not undo the decision: `abort` and the next start find it in the log and go on.
"""

from collections.abc import Sequence

from spark_eos._deadline import Deadline
from spark_eos._endtxn.commit import commit_decided
from spark_eos._protocol.transactions.fate import Fate
from spark_eos._protocol.transactions.transaction import TransactionRecord
from spark_eos._session import Session
from spark_eos.errors import RetriableError, TransactionLostError


def complete(session: Session, records: Sequence[TransactionRecord], deadline: Deadline) -> None:
    """Return when every transaction of `records` is known to be committed."""
    found = commit_decided(session, records, deadline)
    for record in records:
        name = record.identity.transactional_id
        fate = found.fates[name]
        if fate is Fate.COMMITTED:
            continue
        fields = {
            "batch_id": record.batch_id,
            "query_id": record.query_id,
            "transactional_id": name,
            "refusal": found.refusals[name],
        }
        if fate is Fate.ABORTED:
            raise TransactionLostError(
                "batch {batch_id} of query {query_id} is decided, but {transactional_id} was"
                " aborted before it could be committed ({refusal}). It timed out, or another driver"
                " took the id over. Start the query again: recovery writes what was lost",
                **fields,
            )
        raise RetriableError(
            "batch {batch_id} of query {query_id} is decided, but {transactional_id} is not known"
            " to be committed ({refusal}, its records are {fate}). Start the query again: recovery"
            " asks once more",
            fate=fate.value,
            **fields,
        )
