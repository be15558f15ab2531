# ruff: noqa: ARG002 - the signatures are those of deltalake and of the product
"""A Delta table in memory, under the product's own `TransactionLog`.

Commits come one after the other. A commit is refused when one that came behind its snapshot has
an application transaction of the same id; an equal or lower version in sequence is not refused, as
in delta-rs. What the log makes of that, guard and settling included, is the product's code.
"""

from dataclasses import dataclass, field

from deltalake.exceptions import CommitFailedError, TableNotFoundError

from spark_eos._log.files import LiveFile
from spark_eos._log.record import entry_order
from spark_eos._protocol.transactions.transaction import TransactionRecord
from tests.simulation.process import current, port


@dataclass
class Storage:
    """What lies in the table's folder: its commits, oldest first. The first one creates it."""

    commits: list["Commit"] = field(default_factory=list)
    synced: int = 1  # so many of them are on the disk; the rest is in its cache

    def cut_power(self):
        """What was not synced is gone."""
        del self.commits[self.synced :]

    def __deepcopy__(self, memo):
        return Storage(list(self.commits), self.synced)  # a commit never changes


@dataclass(frozen=True)
class Commit:
    """Application transactions, and the rows of one data file with the file's statistics."""

    transactions: dict[str, int] = field(default_factory=dict)
    records: tuple[TransactionRecord, ...] = ()
    file: LiveFile | None = None


class Table:
    """A snapshot, as deltalake's `DeltaTable` is one."""

    def __init__(self, uri, storage_options=None):
        self.storage = current().world.storage
        port("Delta open", self._look, _unreachable)

    def _look(self):
        if not self.storage.commits:
            raise TableNotFoundError("no table")
        self._version = len(self.storage.commits) - 1

    def version(self):
        return self._version

    def update_incremental(self):
        port("Delta refresh", self._look, _unreachable)

    def transaction_version(self, app_id):
        for commit in reversed(self.storage.commits[: self._version + 1]):
            if app_id in commit.transactions:
                return commit.transactions[app_id]
        return None

    def commit(self, transactions, records):
        for other in self.storage.commits[self._version + 1 :]:
            if other.transactions.keys() & transactions.keys():
                raise CommitFailedError("Concurrent transaction failed")
        file = _file(str(len(self.storage.commits)), records) if records else None
        self.storage.commits.append(Commit(transactions, tuple(records), file))
        self._version = len(self.storage.commits) - 1


def open_table(location, storage_options):
    """The product's `open_table` without its checks of foreign tables."""
    storage = current().world.storage
    if not storage.commits:
        port("Delta create", lambda: storage.commits or storage.commits.append(Commit()), _refuse)
    return Table(location)


def write(table, data, *, mode, commit_properties, **_kwargs):
    """Delta's append."""
    assert mode == "append"
    transactions = {t.app_id: t.version for t in commit_properties.app_transactions}
    records = newest_first(data)
    steps = ", ".join(sorted({f"{r.batch_id} {r.state.wire_name}" for r in records}))
    port(f"Delta commit of {steps}", lambda: table.commit(transactions, records), _refuse)


def write_nothing(table, properties):
    """A commit of application transactions alone."""
    transactions = {t.app_id: t.version for t in properties.app_transactions}
    port("Delta commit of a start", lambda: table.commit(transactions, []), _refuse)


def live_files(table):
    """One file for each commit."""
    return [c.file for c in table.storage.commits[: table.version() + 1] if c.file is not None]


class Store:
    """Opens the table, syncs it, and reads the rows of its files."""

    def __init__(self, uri, storage_options):
        self._storage = current().world.storage

    def sync(self, version):
        def effect():
            self._storage.synced = max(self._storage.synced, version + 1)

        port("Delta sync", effect, _unreachable)

    def open_table(self):
        return Table(None)

    def commit_mark(self, version):
        return ()

    def read(self, files):
        def effect():
            return newest_first(
                r for f in files for r in self._storage.commits[int(f.path)].records
            )

        return port("Delta read", effect, _unreachable)


def newest_first(records):
    """In the order in which the log reads rows."""
    return sorted(records, key=entry_order, reverse=True)


def _file(path, records):
    return LiveFile(
        path=path,
        size=1,
        records=len(records),
        max_version=1,
        min_query_id=min(r.query_id for r in records),
        max_query_id=max(r.query_id for r in records),
        min_batch_id=min(r.batch_id for r in records),
        max_batch_id=max(r.batch_id for r in records),
        min_entry=min(r.entry_timestamp for r in records),
        max_entry=max(r.entry_timestamp for r in records),
    )


def _unreachable():
    raise OSError("the store did not answer")


def _refuse():
    raise CommitFailedError("the store did not say whether the commit was taken")
