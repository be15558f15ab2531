"""Driver. After an append of unknown outcome: is it in the log?

A commit can be in the log although its writer got an error. The answer was lost, or the client
repeated a request that had succeeded and met its own commit as a conflict. So the error says
nothing, and the rows are looked for.
"""

from collections.abc import Sequence

from spark_eos._log.cause import cause_of
from spark_eos._log.table import LogTable
from spark_eos._log.tail import Tail
from spark_eos._protocol.transactions.state import TransactionState
from spark_eos._protocol.transactions.transaction import TransactionRecord
from spark_eos.errors import FencedError, RetriableError, SparkEosError


def holds_rows(table: LogTable, records: Sequence[TransactionRecord]) -> bool:
    """Whether the table's snapshot has all these rows. Reads only files that can hold them."""
    times = [record.entry_timestamp for record in records]
    query_id = records[0].query_id
    files = [f for f in table.live_files() if f.may_hold(query_id, min(times), max(times))]
    return set(table.as_stored(records)) <= set(table.read(files))


def fenced_error(now: Tail, wanted: Tail, location: str) -> SparkEosError:
    """The error for a driver that wanted to log `wanted`, but the query is at `now`."""
    fields: dict[str, object] = {"batch_id": wanted.batch_id, "query_id": wanted.query_id}
    rows = now.batch.records if now.batch is not None else ()
    if rows and all(row.state is TransactionState.DEAD for row in rows):
        return RetriableError(
            "the ids of query {query_id} expired at the moment when batch {batch_id} was to be"
            " logged, because the query was idle for long. Start the query again",
            **fields,
        )
    return FencedError(
        "batch {batch_id} of query {query_id} is refused by the transaction log at {location}."
        " Another driver (run {runs}) has logged batch {logged_batch_id} since this one looked."
        " Let one of the two run: stop the other, then start this query again",
        location=location,
        runs=", ".join(sorted({row.run_id for row in rows})) or "unknown",
        logged_batch_id=now.batch_id,
        **fields,
    )


def not_written_error(
    wanted: Tail, records: Sequence[TransactionRecord], location: str, cause: Exception | None
) -> SparkEosError:
    """The error for a driver whose rows are not in the log. Not all rows decide a batch."""
    decides = any(record.state.is_pending for record in records)
    return RetriableError(
        "batch {batch_id} of query {query_id} could not be written to the transaction log at"
        " {location}: {cause}. {outcome}. Start the query again when the log can be written",
        batch_id=wanted.batch_id,
        query_id=wanted.query_id,
        location=location,
        cause=cause_of(cause),
        outcome="Nothing was decided" if decides else "Only the completion record is missing",
    )
