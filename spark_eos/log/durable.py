"""Driver: on a local disk a commit counts when it is on the disk, and not only in the cache of it.

delta-rs writes files and never syncs one, so a power cut takes the commits of the last seconds with
it. A decision that is gone when EndTxn was sent would be taken a second time, and its rows would be
visible twice. So who has written a commit syncs it before going on, and who acts on what another
process wrote syncs all there is: that one may have died in between. An object store keeps what it
has answered for.
"""

import json
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final
from urllib.parse import unquote

_COMMITS: Final = "_delta_log"


def sync_commits(table: Path, versions: Iterable[int]) -> None:
    """Return when these commits, and the files that they add, are on the disk."""
    _sync_commits(table, [table / _COMMITS / f"{version:020}.json" for version in versions])


def sync_all_commits(table: Path) -> None:
    """The same for every commit whose file is there. Older ones are in a checkpoint."""
    _sync_commits(table, sorted((table / _COMMITS).glob("*.json")))


def sync_checkpoint(table: Path, version: int) -> None:
    """The same for a checkpoint: a table that points to half of one cannot be opened."""
    for name in (f"{version:020}.checkpoint.parquet", "_last_checkpoint"):
        _sync(table / _COMMITS / name)
    _sync(table / _COMMITS)


def _sync_commits(table: Path, commits: Iterable[Path]) -> None:
    for commit in commits:
        # Maintenance may take old files away at any time, and only such as are in a checkpoint.
        with suppress(FileNotFoundError):
            for added in _added(commit):
                _sync(table / added)
            _sync(commit)
    for folder in (table / _COMMITS, table):
        _sync(folder)


def _added(commit: Path) -> list[str]:
    actions = (json.loads(line) for line in commit.read_text().splitlines() if line)
    return [unquote(action["add"]["path"]) for action in actions if "add" in action]


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
