"""Driver, after a batch: delete the data files of the log that nobody can need any more.

The log's folder may also hold files of somebody else. So only files that this log wrote are
candidates: regular files directly in the folder, with the name of a data file. A candidate is
deleted if nobody can need it:

| who may need it | is protected because |
|---|---|
| a reader of the newest snapshot | the snapshot is refreshed first |
| a driver that is about to commit it | only old files are deleted |
| a reader of an older snapshot | the files of past snapshots are remembered |

The age of a file does not protect a reader: a file may be live for days before a rewrite replaces
it. The reader needs time after the removal. So the names of the live files are stored every half
hour, with the time, in a small file. A file is deleted if it is not live, was not live in a past
snapshot that is two hours old, and was two hours old already when that snapshot was taken.

Why a deleted file was removed two hours ago or more. Call the past snapshot P. Suppose that the
file was removed later than P. Then it was live in P, or it was added after P. P names the files
that were live in it. A file that was added after P was not two hours old at the time of P, because
no writer waits for two hours between its file and its commit.

Delta knows the exact time of each removal, but it is not kept for two hours: the commits with the
remove actions are gone by then (retention.py), and a checkpoint that carried the tombstones would
have 7,200 of them at one append a second. A past snapshot has about a hundred names, whatever the
age of the log. If the stored snapshots are lost or unreadable, clean-up starts two hours later.
"""

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from spark_eos._log.files import FileStore
from spark_eos._log.table import LogTable

# Each of the two waits. Brokers accept clocks that are ahead by an hour, and a driver that is held
# up for longer than its transactions' time-out, a quarter of an hour, has lost them.
VACUUM_HOURS: Final = 2
# Delta ignores names that begin with an underscore, and so does a VACUUM by hand.
PAST_SNAPSHOTS: Final = "_past_snapshots.json"
# How often a snapshot is stored. Clean-up lists the folder as often as that: with 100,000 files in
# it, a listing takes more than a second.
REMEMBER_EVERY: Final = timedelta(minutes=30)
# A batch waits while files are deleted, so a backlog is spread over several runs. The least number
# is about twice what is replaced between two runs. On an object store it takes some 50 s.
MIN_DELETIONS: Final = 2048
DELETION_LIMIT_S: Final = 20.0

_WAIT: Final = timedelta(hours=VACUUM_HOURS)
_FORMAT_VERSION: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PastSnapshot:
    """The live files of the table at some moment between two times."""

    after: datetime
    before: datetime
    files: frozenset[str]


def vacuum(table: LogTable, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
    """Delete the data files that no snapshot of the last two hours holds, or that none ever held.

    The clock is read before and after the snapshot: the driver may be frozen in between.
    """
    after = clock()
    table.refresh()
    now, store = clock(), table.files
    live = frozenset(file.path for file in table.live_files())
    newest = PastSnapshot(after=after, before=now, files=live)
    # A time in the future is of a driver whose clock is ahead. It says nothing about an age.
    past = sorted((s for s in _read(store) if s.before <= now), key=lambda s: s.before)
    if past and past[-1].before > now - REMEMBER_EVERY:
        return
    old = [snapshot for snapshot in past if snapshot.before <= now - _WAIT]
    # Where files are left, the newest snapshot is not stored yet, and so the next run goes on.
    if not old or _delete(store, _unneeded(store, newest, old[-1])):
        # Of the old snapshots only the newest is of use.
        store.write_text(PAST_SNAPSHOTS, _to_json([*past[max(len(old) - 1, 0) :], newest]))


def _unneeded(store: FileStore, newest: PastSnapshot, old: PastSnapshot) -> list[str]:
    """The names of the files that may go, the oldest first."""
    needed = newest.files | old.files
    files = [
        file
        for file in store.list_data_files()
        if file.name not in needed and file.modified < old.after - _WAIT
    ]
    return [file.name for file in sorted(files, key=lambda file: file.modified)]


def _delete(store: FileStore, names: Sequence[str]) -> bool:
    """Delete files while the time lasts, and return whether none is left."""
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
        # Nothing was stored yet, or a power cut left half of the file, or a newer release wrote it.
        return []


def _to_json(snapshots: Sequence[PastSnapshot]) -> str:
    return json.dumps(
        {
            "version": _FORMAT_VERSION,
            "snapshots": [
                {
                    "after": snapshot.after.isoformat(),
                    "before": snapshot.before.isoformat(),
                    "files": sorted(snapshot.files),
                }
                for snapshot in snapshots
            ],
        }
    )


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
