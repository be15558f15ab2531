"""Driver and snapshot reader. The Delta table of the log: one snapshot, its files, and commits.

`TransactionLog` knows what the rows mean. The simulation has a table in memory instead of this one.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from deltalake import CommitProperties, DeltaTable, Transaction, WriterProperties, write_deltalake

from spark_eos._log.files import FileStore, LiveFile, live_files
from spark_eos._log.location import COMMIT_RETRIES, NO_HOOKS, has_own_columns, open_table, table_uri
from spark_eos._log.record import from_table, to_table
from spark_eos._protocol.transactions.transaction import TransactionRecord

_WRITER: Final = WriterProperties(compression="ZSTD")


class LogTable:
    """A snapshot of the table. Only `refresh`, `reopen` and `commit` move it."""

    def __init__(self, files: FileStore, delta: DeltaTable | None = None) -> None:
        self.files = files
        self.delta = delta or files.open_table()
        self._mark = files.commit_mark(self.version)

    @classmethod
    def open(cls, location: str, storage_options: Mapping[str, str]) -> "LogTable":
        """Open the table at `location`. Create it if there is nothing."""
        delta = open_table(location, storage_options)
        return cls(FileStore(table_uri(location), storage_options), delta)

    @property
    def version(self) -> int:
        """The version of this snapshot."""
        return self.delta.version()

    @property
    def is_replaced(self) -> bool:
        """Whether the commit file of this version is gone, or another one after a restore."""
        return self._mark != self.files.commit_mark(self.version)

    def refresh(self) -> None:
        """Move to the newest version, commit by commit."""
        self.delta.update_incremental()
        self._mark = self.files.commit_mark(self.version)

    def reopen(self) -> None:
        """Open the table again, at its newest version."""
        self.delta = self.files.open_table()
        self._mark = self.files.commit_mark(self.version)

    def sync(self) -> None:
        """Return when every commit up to this version outlives a power cut, see durable.py."""
        self.files.sync(self.version)

    def application_version(self, application_id: str) -> int | None:
        """The version of one of Delta's application transactions in this snapshot."""
        return self.delta.transaction_version(application_id)

    def live_files(self) -> list[LiveFile]:
        """The data files of this snapshot with their statistics. Costs no I/O."""
        return live_files(self.delta)

    def read(self, files: Iterable[LiveFile]) -> list[TransactionRecord]:
        """All records of these files, newest first."""
        return self.files.read(files)

    def read_arrow(self) -> Any:
        """All rows of this snapshot as an Arrow table, oldest first."""
        return self.files.read_table(self.live_files()).sort_by("entry_timestamp")

    def commit(self, records: Sequence[TransactionRecord], transactions: Mapping[str, int]) -> None:
        """Append rows, or none. Refused if a commit since this snapshot has one of these ids."""
        properties = CommitProperties(
            app_transactions=[Transaction(*pair) for pair in transactions.items()],
            max_commit_retries=COMMIT_RETRIES,
        )
        if not records:
            self.delta.create_write_transaction(
                [],
                mode="append",
                schema=self.delta.schema(),
                commit_properties=properties,
                post_commithook_properties=NO_HOOKS,
            )
            return
        write_deltalake(
            self.delta,
            to_table(records),
            mode="append",
            schema_mode=None if has_own_columns(self.delta) else "merge",
            writer_properties=_WRITER,
            commit_properties=properties,
            post_commithook_properties=NO_HOOKS,
        )

    @staticmethod
    def as_stored(records: Sequence[TransactionRecord]) -> list[TransactionRecord]:
        """The records as the table returns them, newest first."""
        return from_table(to_table(records))
