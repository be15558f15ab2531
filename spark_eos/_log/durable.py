"""Driver: on a local disk a commit counts when it is on the disk, and not only in the cache of it.

delta-rs writes files and never syncs one, so a power cut takes the commits of the last seconds with
it. A decision that is gone when EndTxn was sent would be taken a second time, and its rows would be
visible twice. So who has written a commit syncs it before going on, together with those below it
that others wrote: a commit counts only above all before it. And who acts on what another process
wrote syncs that first: it may have died in between. An object store keeps what it has answered for.
"""

import errno
import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Final
from urllib.parse import unquote

_COMMITS: Final = "_delta_log"
# Some file systems, mounted object stores among them, know no sync of a folder, only of files.
_NO_SYNC_OF_FOLDERS: Final = (errno.EINVAL, errno.EBADF)


def sync_commits(table: Path, *, after: int, upto: int) -> None:
    """Return when these commits, and the files that they add, are on the disk.

    Only those whose file is there: older ones are in a checkpoint.
    """
    folder = table / _COMMITS
    first, last = f"{after + 1:020}.json", f"{upto:020}.json"
    names = (name for name in os.listdir(folder) if name.endswith(".json"))
    for name in sorted(name for name in names if first <= name <= last):
        # Maintenance may take old files away at any time, and only such as are in a checkpoint.
        with suppress(FileNotFoundError):
            for added in _added(folder / name):
                with suppress(FileNotFoundError):
                    _sync(table / added)
            _sync(folder / name)
    for changed in (folder, table):
        _sync_folder(changed)


def sync_path(table: Path) -> None:
    """The same for the way to the table: its folder may be new, and the folders above it too."""
    for folder in table.absolute().parents:
        # What this user may not read was not made by this user.
        with suppress(PermissionError):
            _sync_folder(folder)


def sync_checkpoint(table: Path, version: int) -> None:
    """The same for a checkpoint: a table that points to half of one cannot be opened."""
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
