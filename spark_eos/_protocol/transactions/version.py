"""A version of an application that runs again: does it have the rows that were written? Pure.

A version that the log knows as written is not written again. A run with other rows would lose them
without a word, so the rows are compared first. Spark may spread the same rows over other partitions
(adaptive execution, another cluster), so all partitions are compared as one multiset of rows.
"""

from collections.abc import Sequence

from spark_eos._protocol.transactions.batch import LoggedBatch, TaskResult
from spark_eos._protocol.transactions.digest import RowsDigest, total_digest
from spark_eos._protocol.transactions.state import TransactionState
from spark_eos.errors import LogError, NonDeterministicReplayError, OperatorError

# A pending row counts: the planner has completed it. A tombstone is of a version that ended well.
_WRITTEN = (
    TransactionState.COMPLETE_COMMIT,
    TransactionState.PREPARE_COMMIT,
    TransactionState.DEAD,
)


def check_same_rows(
    logged: LoggedBatch | None,
    results: Sequence[TaskResult],
    *,
    application: str,
    query_id: str,
    version: int,
    last_version: int,
) -> None:
    """Raise unless a version that is not written again has the rows that were written."""
    where = f"version {version} of txnAppId '{application}' (query {query_id})"
    try:
        now = total_digest(result.digest for result in results)
        written = _written_rows(logged, is_last=version == last_version)
    except LogError as error:
        raise type(error)(f"{where}: {error}") from error
    if written is None and now.records:
        raise OperatorError(
            f"{where} was written so long ago that its rows have expired from the transaction log:"
            f" the rows of this run ({now.records}) cannot be compared with them. Nothing was"
            " written now. If these rows are not in the topic, write them as version"
            f" {last_version + 1}; if they are, leave this write out"
        )
    if written is not None and now != written:
        raise NonDeterministicReplayError(
            f"{where} is written already, and ran again with other rows (in the log:"
            f" {written.records}, now: {now.records}). Nothing was written now. If these are new"
            f" rows, write them as version {last_version + 1}, or under a txnAppId that contains"
            " the id of the streaming query: spark_eos.txn_options gives one. If they are the rows"
            " of the first run with other values (the current time, rand()), they are in the topic"
            " already: leave this write out"
        )


def _written_rows(logged: LoggedBatch | None, *, is_last: bool) -> RowsDigest | None:
    """The rows of a version in the log; None where the log does not have all of them any more.

    The tombstones of an idle application are one for each transactional id: complete for its last
    version, and for an older one only as far as no later version used the id.
    """
    if logged is None:
        return None
    rows = [r for r in logged.records if r.state in _WRITTEN and r.sink_partition is not None]
    is_dead = any(record.state is TransactionState.DEAD for record in rows)
    partitions = max((record.sink_partitions for record in rows), default=0)
    if is_dead and not is_last and len(rows) < partitions:
        return None
    # An id that lost its rows and got none again keeps the digest of what it lost.
    return total_digest(record.digest for record in rows if record.partitions)
