"""Driver, after a batch. Delete the data files of the log that nobody can need any more.

Only files that this log wrote are candidates, see docs/design/log.md. Half-hourly snapshots of the
live files are stored. Call P a stored snapshot that is two hours old. A file is deleted if it is
not live, if P does not name it, and if it was two hours old already at the time of P.

So only files that were removed at least two hours ago are deleted. Suppose a file was removed later
than P. Then it was live in P, or it was added after P. But P does not name it. And it was not added
after P, because no writer waits for two hours between its file and its commit.

A past snapshot has about a hundred names. Tombstones of two hours in Delta would be 7,200 in each
checkpoint, at one append a second. If the stored snapshots are lost, clean-up starts later.
"""

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from spark_eos._log.files import FileStore
from spark_eos._log.table import LogTable

# Each of the two waits. Brokers accept clocks that are an hour ahead. A driver that is held up for
# longer than the time-out of its transactions, a quarter of an hour, has lost them.
VACUUM_HOURS: Final = 2
# Delta and a VACUUM by hand ignore names that begin with an underscore.
PAST_SNAPSHOTS: Final = "_past_snapshots.json"
# How often a snapshot is stored and the folder is listed. A listing of 100,000 files takes more
# than a second.
REMEMBER_EVERY: Final = timedelta(minutes=30)
# A batch waits for the deletions, so a backlog is spread over several runs. The minimum is about
# twice what is replaced between two runs. It takes some 50 s on an object store.
MIN_DELETIONS: Final = 2048
DELETION_LIMIT_S: Final = 20.0

_WAIT: Final = timedelta(hours=VACUUM_HOURS)
_FORMAT_VERSION: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PastSnapshot:
    """The live files of the table at a moment between two times."""

    after: datetime
    before: datetime
    files: frozenset[str]


def vacuum(table: LogTable, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
    """Delete the data files that no snapshot of the last two hours names."""
    # The clock is read before and after the snapshot: the driver may be frozen in between.
    after = clock()
    table.refresh()
    now, store = clock(), table.files
    live = frozenset(file.path for file in table.live_files())
    newest = PastSnapshot(after=after, before=now, files=live)
    # A time in the future is from a driver whose clock is ahead. It proves no age.
    past = sorted((s for s in _read(store) if s.before <= now), key=lambda s: s.before)
    if past and past[-1].before > now - REMEMBER_EVERY:
        return
    old = [snapshot for snapshot in past if snapshot.before <= now - _WAIT]
    # If files are left, the newest snapshot is not stored, so the next run continues.
    if not old or _delete(store, _unneeded(store, newest, old[-1])):
        # Only the newest of the old snapshots is needed.
        store.write_text(PAST_SNAPSHOTS, _to_json([*past[max(len(old) - 1, 0) :], newest]))


def _unneeded(store: FileStore, newest: PastSnapshot, old: PastSnapshot) -> list[str]:
    needed = newest.files | old.files
    files = sorted(store.list_data_files(), key=lambda file: file.modified)  # the oldest first
    return [f.name for f in files if f.name not in needed and f.modified < old.after - _WAIT]


def _delete(store: FileStore, names: Sequence[str]) -> bool:
    """Delete files within a time limit. Return whether none is left."""
    store.delete(names[:MIN_DELETIONS])
    end = time.monotonic() + DELETION_LIMIT_S
    for name in names[MIN_DELETIONS:]:
        if time.monotonic() > end:
            return False
        store.delete([name])
    return True


def _read(store: FileStore) -> list[PastSnapshot]:
    try:
        return _from_json(store.read_text(PAST_SNAPSHOTS) or "")
    except (ValueError, KeyError, TypeError):
        # Nothing is stored yet, a power cut left half of the file, or a newer release wrote it.
        return []


def _to_json(snapshots: Sequence[PastSnapshot]) -> str:
    stored = [
        {"after": s.after.isoformat(), "before": s.before.isoformat(), "files": sorted(s.files)}
        for s in snapshots
    ]
    return json.dumps({"version": _FORMAT_VERSION, "snapshots": stored})


def _from_json(text: str) -> list[PastSnapshot]:
    content: dict[str, Any] = json.loads(text)
    if content["version"] != _FORMAT_VERSION:
        raise ValueError(f"version {content['version']}")
    return [
        PastSnapshot(
            after=datetime.fromisoformat(snapshot["after"]).astimezone(UTC),
            before=datetime.fromisoformat(snapshot["before"]).astimezone(UTC),
            files=frozenset(snapshot["files"]),
        )
        for snapshot in content["snapshots"]
    ]
