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
    """Stands in for `LogTable`. One data file for each commit that has rows."""

    is_replaced = False

    def __init__(self):
        self._storage = current().world.storage
        commits = self._storage.commits
        if not commits:
            port("Delta create", lambda: commits or commits.append(Commit()), _refuse)
        port("Delta open", self._look, _unreachable)

    def _look(self):
        if not self._storage.commits:
            raise TableNotFoundError("no table")
        self.version = len(self._storage.commits) - 1

    def refresh(self):
        port("Delta refresh", self._look, _unreachable)

    def reopen(self):
        port("Delta open", self._look, _unreachable)

    def sync(self):
        def effect():
            self._storage.synced = max(self._storage.synced, self.version + 1)

        port("Delta sync", effect, _unreachable)

    def application_version(self, application_id):
        for commit in reversed(self._storage.commits[: self.version + 1]):
            if application_id in commit.transactions:
                return commit.transactions[application_id]
        return None

    def live_files(self):
        commits = self._storage.commits[: self.version + 1]
        return [commit.file for commit in commits if commit.file is not None]

    def read(self, files):
        def effect():
            return newest_first(
                r for f in files for r in self._storage.commits[int(f.path)].records
            )

        return port("Delta read", effect, _unreachable)

    def commit(self, records, transactions):
        steps = ", ".join(sorted({f"{r.batch_id} {r.state.wire_name}" for r in records}))
        name = f"Delta commit of {steps or 'a start'}"
        port(name, lambda: self._commit(newest_first(records), transactions), _refuse)

    def _commit(self, records, transactions):
        for other in self._storage.commits[self.version + 1 :]:
            if other.transactions.keys() & transactions.keys():
                raise CommitFailedError("Concurrent transaction failed")
        file = _file(str(len(self._storage.commits)), records) if records else None
        self._storage.commits.append(Commit(transactions, tuple(records), file))
        self.version = len(self._storage.commits) - 1

    @staticmethod
    def as_stored(records):
        return newest_first(records)


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
