"""Driver. The end of the log for one query, found without a scan of the table.

Each append moves some of Delta's application transactions, in the same commit as its rows:

| application id | version |
|---|---|
| `<query id>` | the batch id: the guard, as in Delta's own idempotent writes |
| `<query id>/batch-since` | when the first row of that batch was logged, in microseconds |
| `<query id>/newest` | when the newest row of the query was logged, in microseconds |
| `<query id>/driver` | the number of the driver that was started last |
| `<query id>/start` | the mark of that start (_protocol/transactions/ownership.py) |
| `<query id>/token` | epoch and mark of the last move of the query's own producer epoch |
| `<query id>/token-producer` | its producer id |
| `<query id>/token-place` | a short name for its cluster and transactional id |

Checkpoints keep application transactions for ever, so they are known at any age of the table. The
two times bound the rows of the last batch, and the statistics of the files then select a few files.
"""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from spark_eos._log.record import EPOCH, MICROSECOND
from spark_eos._log.table import LogTable
from spark_eos._protocol.transactions.batch import LoggedBatch, latest_batch
from spark_eos._protocol.transactions.ownership import ProducerEpoch, Token
from spark_eos._protocol.transactions.transaction import TransactionRecord

_MARK_BITS: Final = 32
_NO_EPOCH: Final = ProducerEpoch(-1, -1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tail:
    """The end of a query's log. It was true at the table's version `at_version`."""

    query_id: str
    at_version: int
    batch_id: int | None = None
    since: datetime = EPOCH
    newest: datetime = EPOCH
    batch: LoggedBatch | None = None
    is_read: bool = False  # whether `batch` was read
    driver: int | None = None  # None until a driver of this release starts
    start_mark: int = 0
    token: Token | None = None

    @property
    def transactions(self) -> dict[str, int]:
        """The application transactions that store this tail."""
        if self.batch_id is None:
            return self.start_transactions
        return {
            self.query_id: self.batch_id,
            f"{self.query_id}/batch-since": _microseconds(self.since),
            f"{self.query_id}/newest": _microseconds(self.newest),
        } | self.start_transactions

    @property
    def start_transactions(self) -> dict[str, int]:
        """The application transactions that store the last start and move."""
        if self.driver is None or self.token is None:
            return {}
        producer_id, _epoch = self.token.before or _NO_EPOCH
        return {
            f"{self.query_id}/driver": self.driver,
            f"{self.query_id}/start": self.start_mark,
            f"{self.query_id}/token": _packed(self.token),
            f"{self.query_id}/token-producer": producer_id,
            f"{self.query_id}/token-place": self.token.place,
        }

    def is_current(self, table: LogTable) -> bool:
        """Whether this is the end of the query's log in the table's snapshot."""
        if self.at_version == table.version:
            return True
        # Each append moves `newest`, and each start moves `driver` or `token`. Nothing else is
        # compared: a look-up in the snapshot takes up to a millisecond.
        newest = _datetime(table.application_version(f"{self.query_id}/newest"))
        driver = table.application_version(f"{self.query_id}/driver")
        token = table.application_version(f"{self.query_id}/token")
        packed = None if self.token is None else _packed(self.token)
        return (newest, driver, token) == (self.newest, self.driver, packed)


def find_tail(table: LogTable, query_id: str) -> Tail:
    """Find the end of the query's log in the table's snapshot. Reads no data file."""
    batch_id = table.application_version(query_id)
    return Tail(
        query_id=query_id,
        at_version=table.version,
        batch_id=batch_id,
        since=_datetime(table.application_version(f"{query_id}/batch-since")),
        newest=_datetime(table.application_version(f"{query_id}/newest")),
        is_read=batch_id is None,
        driver=table.application_version(f"{query_id}/driver"),
        start_mark=table.application_version(f"{query_id}/start") or 0,
        token=_token(table, query_id),
    )


def _packed(token: Token) -> int:
    _producer_id, epoch = token.before or _NO_EPOCH
    return (epoch + 1 << _MARK_BITS) + token.mark


def _token(table: LogTable, query_id: str) -> Token | None:
    packed = table.application_version(f"{query_id}/token")
    if packed is None:
        return None
    epoch, mark = (packed >> _MARK_BITS) - 1, packed & ((1 << _MARK_BITS) - 1)
    before = ProducerEpoch(table.application_version(f"{query_id}/token-producer") or 0, epoch)
    place = table.application_version(f"{query_id}/token-place") or 0
    return Token(before=before if epoch >= 0 else None, mark=mark, place=place)


def read_tail(table: LogTable, tail: Tail) -> Tail:
    """The tail with the rows of its batch."""
    files = [f for f in table.live_files() if f.may_hold(tail.query_id, tail.since, tail.newest)]
    rows = [
        record
        for record in table.read(files)
        if record.query_id == tail.query_id and record.batch_id == tail.batch_id
    ]
    return replace(tail, batch=latest_batch(rows), is_read=True)


def after_append(
    tail: Tail, batch_id: int, records: list[TransactionRecord], token: Token | None = None
) -> Tail:
    """The tail after an append of `records`, newest first. `token` is that of a decision."""
    same_batch = tail.batch_id == batch_id
    known = list(tail.batch.records) if same_batch and tail.batch else []
    written = [record for record in records if record.batch_id == batch_id]
    return replace(
        tail,
        batch_id=batch_id,
        since=tail.since if same_batch else min(r.entry_timestamp for r in records),
        newest=max(r.entry_timestamp for r in records),
        batch=latest_batch([*written, *known]),
        is_read=tail.is_read or not same_batch,
        token=token or tail.token,
    )


def _microseconds(at: datetime) -> int:
    return (at - EPOCH) // MICROSECOND


def _datetime(microseconds: int | None) -> datetime:
    return EPOCH + (microseconds or 0) * MICROSECOND
