"""Driver: the end of the log for one query, found without reading the table.

Each append moves three of Delta's application transactions, in the same commit as its rows:

| application id | version |
|---|---|
| `<query id>` | the batch id: the guard, as in Delta's own idempotent writes |
| `<query id>/batch-since` | when the first row of that batch was logged, in microseconds |
| `<query id>/newest` | when the newest row of the query was logged, in microseconds |

Checkpoints keep them for ever, so they are known at any age of the table. `newest` changes with
each append: it tells whether anything happened to the query. The two times bound where the rows of
the last batch are, and the files' statistics then name one file, or a few.
"""

from dataclasses import dataclass, replace
from datetime import datetime

from deltalake import DeltaTable, Transaction

from spark_eos.log.files import FileStore, live_files
from spark_eos.log.record import EPOCH, MICROSECOND
from spark_eos.protocol.batch import LoggedBatch, latest_batch
from spark_eos.protocol.transaction import TransactionRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Tail:
    """What is known of the end of a query's log.

    `at_version` is the table's version that it was compared with last. `batch` may be unread.
    """

    query_id: str
    at_version: int
    batch_id: int | None = None
    since: datetime = EPOCH
    newest: datetime = EPOCH
    batch: LoggedBatch | None = None
    is_read: bool = False

    @property
    def transactions(self) -> list[Transaction]:
        """The application transactions that say all this."""
        return [
            Transaction(self.query_id, -1 if self.batch_id is None else self.batch_id),
            Transaction(_since_id(self.query_id), _microseconds(self.since)),
            Transaction(_newest_id(self.query_id), _microseconds(self.newest)),
        ]

    def is_current(self, table: DeltaTable) -> bool:
        """Whether the query is, in the table's snapshot, where this says it is."""
        if self.at_version == table.version():
            return True
        return newest_entry(table, self.query_id) == self.newest


def find_tail(table: DeltaTable, query_id: str) -> Tail:
    """The end of the query's log in the table's snapshot. Reads no data file."""
    batch_id = table.transaction_version(query_id)
    version = table.version()
    if batch_id is None:
        return Tail(query_id=query_id, at_version=version, is_read=True)
    return Tail(
        query_id=query_id,
        at_version=version,
        batch_id=batch_id,
        since=_datetime(table.transaction_version(_since_id(query_id))),
        newest=newest_entry(table, query_id),
    )


def newest_entry(table: DeltaTable, query_id: str) -> datetime:
    """When the newest row of the query was logged; the epoch where there is none."""
    return _datetime(table.transaction_version(_newest_id(query_id)))


def read_tail(table: DeltaTable, store: FileStore, tail: Tail) -> Tail:
    """The tail with the rows of its batch."""
    files = [f for f in live_files(table) if f.may_hold(tail.query_id, tail.since, tail.newest)]
    rows = [
        record
        for record in store.read(files)
        if record.query_id == tail.query_id and record.batch_id == tail.batch_id
    ]
    return replace(tail, batch=latest_batch(rows), is_read=True)


def after_append(tail: Tail, batch_id: int, records: list[TransactionRecord]) -> Tail:
    """The tail that `records`, newest first, make of it. Rows of the batch before are let go."""
    same_batch = tail.batch_id == batch_id
    known = list(tail.batch.records) if same_batch and tail.batch else []
    written = [record for record in records if record.batch_id == batch_id]
    return Tail(
        query_id=tail.query_id,
        at_version=tail.at_version,
        batch_id=batch_id,
        since=tail.since if same_batch else min(r.entry_timestamp for r in records),
        newest=max(r.entry_timestamp for r in records),
        batch=latest_batch([*written, *known]),
        is_read=tail.is_read or not same_batch,
    )


def _since_id(query_id: str) -> str:
    return f"{query_id}/batch-since"


def _newest_id(query_id: str) -> str:
    return f"{query_id}/newest"


def _microseconds(at: datetime) -> int:
    return (at - EPOCH) // MICROSECOND


def _datetime(microseconds: int | None) -> datetime:
    return EPOCH + (microseconds or 0) * MICROSECOND
