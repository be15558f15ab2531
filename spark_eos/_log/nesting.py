"""Driver. Refuse a log that lies inside of a table or a checkpoint, or contains one.

Clean-up, backup and restore work on whole folders, and a log that was set back could lose or double
rows, see docs/design/log.md. A folder that this user may not read counts as empty: an object store
may grant only the log's folder. The cost there is three requests for each folder above the log, and
a listing of the log's own folder without its commits.
"""

from collections.abc import Mapping
from typing import Final

from spark_eos._log.files import FileStore
from spark_eos._log.folders import COMMITS, DiskFolders, Folders, Place, StoreFolders
from spark_eos.errors import NestedLogError

_CONSEQUENCE: Final = "Clean-up, backup or restore of one would change the other"


def check_nesting(
    location: str, storage_options: Mapping[str, str], checkpoint: str | None
) -> None:
    """Raise if the log is nested. `checkpoint` is the location of the query's own checkpoint."""
    log = Place.of(location)
    own_checkpoint = Place.of(checkpoint) if checkpoint is not None else None
    # One client for the whole store: each client opens its own connections.
    on_store = StoreFolders(FileStore(log.root, storage_options)) if log.root else None
    folders = on_store or DiskFolders()
    check_above(log, own_checkpoint, folders)
    check_below(log, folders)


def check_above(log: Place, own_checkpoint: Place | None, folders: Folders) -> None:
    """Raise if a folder above the log is a table, or a checkpoint that is not the query's own."""
    for parent in log.parents:
        if folders.is_table(parent) and not _is_left_alone(log, parent, folders):
            raise _inside_error(log, parent, "a Delta table")
        if parent != own_checkpoint and folders.is_checkpoint(parent):
            raise _inside_error(log, parent, "the checkpoint of another query")


def _is_left_alone(log: Place, parent: Place, folders: Folders) -> bool:
    """VACUUM leaves a folder alone if its name starts with `_` or `.`. A checkpoint at
    `<table>/_checkpoints/<query>` is a common layout.
    """
    below = log.path.removeprefix(parent.path).lstrip("/")
    return below.startswith(("_", ".")) and not folders.is_log(parent)


def check_below(log: Place, folders: Folders) -> None:
    """Raise if the log's folder contains another table, or a checkpoint."""
    waiting = [log]
    while waiting:
        place = waiting.pop()
        entries = folders.entries(place)
        if place != log and entries.has_table:
            raise _contains_error(log, place, "a Delta table")
        if entries.has_checkpoint:
            raise _contains_error(log, place, "the checkpoint of a query")
        own = {COMMITS} if place == log else set()
        waiting.extend(place.child(name) for name in entries.folders - own)


def _inside_error(log: Place, parent: Place, kind: str) -> NestedLogError:
    return NestedLogError(
        "the transaction log '{log}' lies inside of '{parent}', which is {kind}. {consequence}. Set"
        " the option transactionLog to a folder beside '{parent}', or checkpointLocation if the log"
        " is in the checkpoint. If the log has rows already, stop its queries and move its folder"
        " there first",
        log=str(log),
        parent=str(parent),
        kind=kind,
        consequence=_CONSEQUENCE,
    )


def _contains_error(log: Place, inside: Place, kind: str) -> NestedLogError:
    return NestedLogError(
        "the folder of the transaction log '{log}' {relation} {kind}. {consequence}. Stop the"
        " queries that use them, and move one to a folder beside the other. Then set the option"
        " transactionLog or checkpointLocation to the new folder",
        log=str(log),
        relation="is also" if inside == log else f"contains '{inside}', which is",
        kind=kind,
        consequence=_CONSEQUENCE,
    )
