"""Driver and snapshot reader. The log as one object, with a snapshot of the table.

An append is valid for the snapshot: if another driver has moved the query since, the append is
fenced and writes nothing. Other queries do not matter.

Why exactly one of two drivers wins. Both start from the same newest entry of the query. Delta takes
one commit after the other, and delta-rs refuses a commit if one in between has application
transactions of the same query. An append also moves the snapshot of its own driver, so the newest
entry is compared once more before the next commit.

Why an append that returned stays in the log. It is on the disk (durable.py), and it was found in
the newest snapshot. Without that look a frozen driver could write a version that nobody reads any
more, because old commit files are removed.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from deltalake.exceptions import DeltaError, TableNotFoundError

from spark_eos._log.cause import cause_of
from spark_eos._log.files import LiveFile
from spark_eos._log.guard import check_append
from spark_eos._log.location import check_exists, missing_error, unreadable_error
from spark_eos._log.nesting import check_nesting
from spark_eos._log.record import from_table, newest_per_id
from spark_eos._log.retention import Retention, Schedule, run_maintenance
from spark_eos._log.settle import fenced_error, holds_rows, not_written_error
from spark_eos._log.table import LogTable
from spark_eos._log.tail import Tail, after_append, find_tail, read_tail
from spark_eos._protocol.transactions.batch import LoggedBatch, latest_batch
from spark_eos._protocol.transactions.ownership import Token
from spark_eos._protocol.transactions.transaction import TransactionRecord
from spark_eos.errors import RetriableError, SparkEosError

_LOG = logging.getLogger(__name__)

# delta-rs cannot check for conflicts if the commits since the snapshot were removed.
SNAPSHOT_ATTEMPTS: Final = 5


class TransactionLog:
    """The transaction log at one location. Not safe to share between threads."""

    def __init__(self, location: str, table: LogTable, retention: Retention | None = None) -> None:
        self.location = location
        self._retention = retention or Retention()
        self._table = table
        self._tails: dict[str, Tail] = {}
        self._schedule = Schedule(table.version)

    @classmethod
    def open(
        cls,
        location: str,
        storage_options: Mapping[str, str] | None = None,
        *,
        retention: Retention | None = None,
        checkpoint: str | None = None,
    ) -> "TransactionLog":
        """Open or create the log. It may lie inside of `checkpoint`, which is the query's own."""
        check_nesting(location, storage_options or {}, checkpoint)
        return cls(location, LogTable.open(location, storage_options or {}), retention)

    @classmethod
    def existing(
        cls, location: str, storage_options: Mapping[str, str] | None = None
    ) -> "TransactionLog":
        """Open the log at `location` to read it. Raise if there is none."""
        check_exists(location, storage_options or {})
        return cls(location, LogTable.open(location, storage_options or {}))

    @property
    def version(self) -> int:
        """The table's version of this snapshot."""
        return self._table.version

    def refresh(self) -> None:
        """Move to the newest version. Open the log again if a person has replaced it."""
        if self._table.is_replaced:
            self.reopen()
            return
        try:
            self._table.refresh()
        except (DeltaError, OSError):
            # Commits since the snapshot may be removed. A checkpoint has their content.
            self.reopen()
            return
        self._tails = {
            query_id: replace(tail, at_version=self._table.version)
            for query_id, tail in self._tails.items()
            if tail.is_current(self._table)
        }

    def reopen(self) -> None:
        """Drop everything that is known of the log, and read it again."""
        try:
            self._table.reopen()
        except TableNotFoundError as error:
            raise missing_error(self.location) from error
        except (DeltaError, OSError) as error:
            raise unreadable_error(self.location, error) from error
        self._tails = {}

    def knows(self, query_id: str) -> bool:
        """Whether the query has a batch in the log, or was started on it."""
        tail = self._tail(query_id)
        return tail.batch_id is not None or tail.driver is not None

    def last_batch_id(self, query_id: str) -> int | None:
        """The id of the query's last batch in the log."""
        return self._tail(query_id).batch_id

    def newest_entry(self, query_id: str) -> datetime:
        """When the newest row of the query was logged. Each append moves it."""
        return self._tail(query_id).newest

    def has_lost_rows(self, query_id: str) -> bool:
        """Whether the query's newest row is missing, and too young to have expired."""
        newest = self.newest_entry(query_id)
        if datetime.now(UTC) - newest > self._retention.history:
            return False
        rows = self._read(lambda file: file.may_hold(query_id, newest, newest))
        return all((r.query_id, r.entry_timestamp) != (query_id, newest) for r in rows)

    def driver(self, query_id: str) -> int | None:
        """The number of the driver that was started last."""
        return self._tail(query_id).driver

    def start_mark(self, query_id: str) -> int:
        """The mark of the last start of a driver."""
        return self._tail(query_id).start_mark

    def token(self, query_id: str) -> Token | None:
        """The last logged move of the query's own epoch."""
        return self._tail(query_id).token

    def last_batch(self, query_id: str) -> LoggedBatch | None:
        """The query's last batch. The cost does not depend on the size of the log."""
        return self._read_tail(query_id).batch

    def batch(self, query_id: str, batch_id: int) -> LoggedBatch | None:
        """A batch of the query, if it is still in the log."""
        rows = self._read(lambda file: file.may_hold_batch(query_id, batch_id))
        return latest_batch(r for r in rows if r.query_id == query_id and r.batch_id == batch_id)

    def query_ids(self) -> set[str]:
        """Every query that has rows in the log."""
        return set(self.records().column("query_id").to_pylist())

    def rows_from(self, query_id: str, batch_id: int) -> list[TransactionRecord]:
        """The rows of the query's batches from `batch_id` on."""
        rows = self._read(lambda file: file.may_hold_from(query_id, batch_id))
        return [r for r in rows if r.query_id == query_id and r.batch_id >= batch_id]

    def next_timestamp(self, query_id: str) -> datetime:
        """Now, or just after the query's newest row: the clocks of two drivers may differ."""
        return max(datetime.now(UTC), self._tail(query_id).newest + timedelta(microseconds=1))

    def records(self) -> Any:
        """All rows as an Arrow table, oldest first."""
        return self._table.read_arrow()

    def current(self) -> list[TransactionRecord]:
        """The newest row of each transactional id."""
        return newest_per_id(from_table(self.records()))

    def start(self, query_id: str, driver: int, token: Token, *, start_mark: int) -> bool:
        """Log the start of a driver, which fences older ones. False if the query was moved."""
        seen = self._tail(query_id)
        wanted = replace(seen, driver=driver, token=token, start_mark=start_mark)
        try:
            if seen.is_current(self._table):
                self._table.commit([], wanted.start_transactions)
        except Exception as error:  # whatever it is, the outcome is unknown
            _LOG.info("query %s: reading the log again after a failed start: %s", query_id, error)
        try:
            self.reopen()
            self._table.sync()
        except Exception as error:
            raise RetriableError(
                "the transaction log at {location} cannot be read: {cause}. Nothing was written."
                " Start query {query_id} again when the log can be read",
                location=self.location,
                cause=cause_of(error),
                query_id=query_id,
            ) from error
        now = self._tail(query_id)
        return (now.driver, now.token) == (driver, token)

    def append(
        self,
        query_id: str,
        batch_id: int,
        records: Sequence[TransactionRecord],
        token: Token | None = None,
    ) -> None:
        """Append rows in one commit. `token` is the move of the query's epoch after a decision."""
        seen = self._read_tail(query_id)
        check_append(seen, batch_id, records)
        wanted = after_append(seen, batch_id, self._table.as_stored(records), token)
        for attempt in range(1, SNAPSHOT_ATTEMPTS + 1):
            try:
                if not seen.is_current(self._table):
                    raise self._fenced(seen, wanted)
                if self._commit(wanted, records):
                    return
                cause: Exception | None = None
            except SparkEosError:
                raise
            except Exception as error:  # whatever it is, the outcome is unknown
                cause = error
            before = self._table.version
            if self._settle(seen, wanted, records):
                return
            if self._table.version == before or attempt == SNAPSHOT_ATTEMPTS:
                break
            _LOG.info("batch %s of query %s is appended again: %s", batch_id, query_id, cause)
        raise not_written_error(wanted, records, self.location, cause) from cause

    def sync(self) -> None:
        """Return when the snapshot outlives a power cut, see durable.py."""
        try:
            self._table.sync()
        except OSError as error:
            raise RetriableError(
                "the transaction log at {location} could not be synced to its disk: {cause}."
                " No decision in it was completed. Start the query again",
                location=self.location,
                cause=error,
            ) from error

    def maintain(self) -> None:
        """Run the maintenance that is due. Called after each batch."""
        if tasks := self._schedule.due(self._table.version):
            run_maintenance(self._table.files, tasks, self._retention)

    def _read(self, may_hold: Callable[[LiveFile], bool]) -> list[TransactionRecord]:
        return self._table.read(file for file in self._table.live_files() if may_hold(file))

    def _tail(self, query_id: str) -> Tail:
        if query_id not in self._tails:
            self._tails[query_id] = find_tail(self._table, query_id)
        return self._tails[query_id]

    def _read_tail(self, query_id: str) -> Tail:
        tail = self._tail(query_id)
        if not tail.is_read:
            tail = self._tails[query_id] = read_tail(self._table, tail)
        return tail

    def _commit(self, wanted: Tail, records: Sequence[TransactionRecord]) -> bool:
        """Commit rows. Return whether they end the query's log in the newest snapshot."""
        self._table.commit(records, wanted.transactions)
        written = replace(wanted, at_version=self._table.version)
        self._table.sync()
        self._table.refresh()
        if not written.is_current(self._table):
            return False
        self._tails[wanted.query_id] = replace(written, at_version=self._table.version)
        return True

    def _settle(self, seen: Tail, wanted: Tail, records: Sequence[TransactionRecord]) -> bool:
        """After an unknown outcome, return whether the log has the rows. Raise if it moved on."""
        try:
            self._table.reopen()
            if holds_rows(self._table, records):
                self._table.sync()
                # The next append compares the tail again: the query may have moved on since.
                self._tails[wanted.query_id] = replace(wanted, at_version=-1)
                return True
            is_current = seen.is_current(self._table)
        except SparkEosError:
            raise
        except Exception as error:
            raise RetriableError(
                "it is not known whether batch {batch_id} of query {query_id} is in the transaction"
                " log at {location}, which cannot be read: {cause}. Start the query again",
                batch_id=wanted.batch_id,
                query_id=wanted.query_id,
                location=self.location,
                cause=error,
            ) from error
        if not is_current:
            raise self._fenced(seen, wanted)
        return False

    def _fenced(self, seen: Tail, wanted: Tail) -> SparkEosError:
        now = read_tail(self._table, find_tail(self._table, seen.query_id))
        return fenced_error(now, wanted, self.location)
