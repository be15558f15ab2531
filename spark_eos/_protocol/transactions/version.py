"""Pure. Step 5: does a version that runs again have the same rows (docs/design/batch_writes.md)?"""

from collections.abc import Sequence

from spark_eos._protocol.transactions.batch import LoggedBatch, TaskResult
from spark_eos._protocol.transactions.digest import RowsDigest, total_digest
from spark_eos._protocol.transactions.state import COMMITTED_STATES, TransactionState
from spark_eos.errors import LogError, NonDeterministicReplayError, OperatorError

# A pending row counts: the planner has completed it. A tombstone is of a version that ended well.
_WRITTEN = (*COMMITTED_STATES, TransactionState.DEAD)


def check_same_rows(
    logged: LoggedBatch | None,
    results: Sequence[TaskResult],
    *,
    application: str,
    query_id: str,
    version: int,
    last_version: int,
) -> None:
    """Raise unless a version that is skipped has the rows that were written."""
    fields = {"version": version, "application": application, "query_id": query_id}
    try:
        now = total_digest(result.digest for result in results)
        written = _written_rows(logged, is_last=version == last_version)
    except LogError as error:
        where = f"version {version} of txnAppId '{application}' (query {query_id}): "
        raise error.preceded_by(where) from error
    if written is None and now.records:
        raise OperatorError(
            "version {version} of txnAppId '{application}' (query {query_id}) was written, but its"
            " rows have expired from the transaction log: the rows of this run ({records}) cannot"
            " be compared with them. Nothing was written now. If these rows are in the topic, leave"
            " this write out. If not, write them as version {next_version}",
            records=now.records,
            next_version=last_version + 1,
            **fields,
        )
    if written is not None and now != written:
        raise NonDeterministicReplayError(
            "version {version} of txnAppId '{application}' (query {query_id}) is written already,"
            " but ran again with other rows (in the log: {written}, now: {records}). Nothing was"
            " written now. If these rows are new, write them as version {next_version}, or under a"
            " txnAppId with the id of the streaming query: see spark_eos.txn_options. If they are"
            " the first run's rows with other values (the current time, rand()), leave this write"
            " out: the topic has them",
            written=written.records,
            records=now.records,
            next_version=last_version + 1,
            **fields,
        )


def _written_rows(logged: LoggedBatch | None, *, is_last: bool) -> RowsDigest | None:
    """The rows of a version in the log; None if the log does not have all of them any more."""
    if logged is None:
        return None
    rows = [r for r in logged.records if r.state in _WRITTEN and r.sink_partition is not None]
    # An older version lacks the tombstones of ids that a later version used.
    is_dead = any(record.state is TransactionState.DEAD for record in rows)
    partitions = max((record.sink_partitions for record in rows), default=0)
    if is_dead and not is_last and len(rows) < partitions:
        return None
    # An id that lost its rows and got none again keeps the digest of the lost rows.
    return total_digest(record.digest for record in rows if record.partitions)
