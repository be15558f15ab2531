"""Driver, after an append whose outcome is not known: what does the log say now?

A commit can be in the log although the writer got an error: the answer was lost, or the client
repeated its own successful request and met itself as a conflict. So an error is never believed; the
rows are looked for.
"""

from collections.abc import Sequence

from spark_eos._log.cause import cause_of
from spark_eos._log.table import LogTable
from spark_eos._log.tail import Tail
from spark_eos._protocol.transactions.state import TransactionState
from spark_eos._protocol.transactions.transaction import TransactionRecord
from spark_eos.errors import FencedError, RetriableError, SparkEosError


def holds_rows(table: LogTable, records: Sequence[TransactionRecord]) -> bool:
    """Whether exactly these rows are in the table's snapshot. Reads only where they could be."""
    times = [record.entry_timestamp for record in records]
    query_id = records[0].query_id
    files = [f for f in table.live_files() if f.may_hold(query_id, min(times), max(times))]
    return set(table.as_stored(records)) <= set(table.read(files))


def fenced_error(now: Tail, wanted: Tail, location: str) -> SparkEosError:
    """The error for a driver that wanted to log `wanted` and finds that the query is at `now`."""
    rows = now.batch.records if now.batch is not None else ()
    if rows and all(row.state is TransactionState.DEAD for row in rows):
        return RetriableError(
            f"the ids of query {wanted.query_id}, which was idle for long, expired at the moment"
            f" when batch {wanted.batch_id} was to be logged. Start the query again"
        )
    runs = sorted({row.run_id for row in rows})
    return FencedError(
        f"batch {wanted.batch_id} of query {wanted.query_id} is refused by the transaction log at"
        f" {location}: another driver (run {', '.join(runs) or 'unknown'}) has logged batch"
        f" {now.batch_id} since this one looked. Let one of the two run: stop the other, then start"
        " this query again"
    )


def not_written_error(
    wanted: Tail, records: Sequence[TransactionRecord], location: str, cause: Exception | None
) -> SparkEosError:
    """The error for a driver whose rows are not in the log. Not each of them decides a batch."""
    decides = any(record.state.is_pending for record in records)
    what = "Nothing was decided" if decides else "Only the record of how the batch ended is missing"
    return RetriableError(
        f"batch {wanted.batch_id} of query {wanted.query_id} could not be written to the"
        f" transaction log at {location}: {cause_of(cause)}. {what}. Start the query again when the"
        " log can be written"
    )
