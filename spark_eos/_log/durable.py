"""Driver. Sync commits of the log to a local disk, see docs/design/log.md.

delta-rs never syncs a file, so a power cut takes the commits of the last seconds. A decision that
is lost after EndTxn would be taken again. A commit counts only above all commits before it, so
these are synced too. A process that acts on a commit of another process syncs it first.
"""

import errno
import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Final
from urllib.parse import unquote

_COMMITS: Final = "_delta_log"
# Some file systems, such as mounted object stores, cannot sync a folder.
_NO_SYNC_OF_FOLDERS: Final = (errno.EINVAL, errno.EBADF)


def sync_commits(table: Path, *, after: int, upto: int) -> None:
    """Return when these commits and their data files are on the disk."""
    folder = table / _COMMITS
    first, last = f"{after + 1:020}.json", f"{upto:020}.json"
    names = (name for name in os.listdir(folder) if name.endswith(".json"))
    for name in sorted(name for name in names if first <= name <= last):
        # Maintenance may remove a file at any time, but only one that a checkpoint replaces.
        with suppress(FileNotFoundError):
            for added in _added(folder / name):
                with suppress(FileNotFoundError):
                    _sync(table / added)
            _sync(folder / name)
    for changed in (folder, table):
        _sync_folder(changed)


def sync_path(table: Path) -> None:
    """Sync the folders above the table: they may be new."""
    for folder in table.absolute().parents:
        # This user did not create a folder that it may not read.
        with suppress(PermissionError):
            _sync_folder(folder)


def sync_checkpoint(table: Path, version: int) -> None:
    """Sync a checkpoint of the table: a table that points to half of one cannot be opened."""
    for name in (f"{version:020}.checkpoint.parquet", "_last_checkpoint"):
        _sync(table / _COMMITS / name)
    _sync_folder(table / _COMMITS)


def _added(commit: Path) -> list[str]:
    actions = (json.loads(line) for line in commit.read_text().splitlines() if line)
    return [unquote(action["add"]["path"]) for action in actions if "add" in action]


def _sync_folder(path: Path) -> None:
    try:
        _sync(path)
    except OSError as error:
        if error.errno not in _NO_SYNC_OF_FOLDERS:
            raise


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
