"""Driver, when a process opens the log to write: refuse a log inside of something else.

Clean-up, backup and restore work on whole folders. If one folder lies inside of another, they
change both. A log that was set back, or lost files, could lose or double rows. So these are
refused before anything is created:

| the log's folder | what |
|---|---|
| lies inside of | another log, or a Delta table that would vacuum it |
| lies inside of | the checkpoint of another query; the query's own is the default layout |
| contains | a Delta table or a checkpoint, at any depth |

Other files and folders, such as notes, are no problem. Nor is a folder that this user may not read:
an object store may grant the log's folder and nothing above it.

The cost on an object store: three requests for each folder above the log, and a listing of the top
of the log's folder, which holds the data files of the last hours. Folders in there are listed too,
but the log itself makes none except for its commits, which are not listed.
"""

from collections.abc import Mapping
from typing import Final

from spark_eos._log.files import FileStore
from spark_eos._log.folders import COMMITS, DiskFolders, Folders, Place, StoreFolders
from spark_eos.errors import NestedLogError

_CONSEQUENCE: Final = "clean-up, backup or restore of one would change the other"


def check_nesting(
    location: str, storage_options: Mapping[str, str], checkpoint: str | None
) -> None:
    """Raise if the log at `location` lies inside of something else, or contains something else.

    `checkpoint` is the location of the query's own checkpoint.
    """
    log = Place.of(location)
    own_checkpoint = Place.of(checkpoint) if checkpoint is not None else None
    # One client for the whole store, because each client opens connections of its own.
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
    """Whether the table does not touch the log's folder. VACUUM leaves folders alone whose name
    starts with `_` or `.`: a checkpoint at `<table>/_checkpoints/<query>` is a common layout.
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
        f"the transaction log '{log}' lies inside of '{parent}', which is {kind}: {_CONSEQUENCE}."
        " Set the option transactionLog (or checkpointLocation, if the log is in the checkpoint) to"
        f" a folder beside '{parent}'. If the log has rows already, stop its queries and move its"
        " folder there first"
    )


def _contains_error(log: Place, inside: Place, kind: str) -> NestedLogError:
    relation = "is also" if inside == log else f"contains '{inside}', which is"
    return NestedLogError(
        f"the folder of the transaction log '{log}' {relation} {kind}: {_CONSEQUENCE}. Stop the"
        " queries that use them, and move one to a folder beside the other. Then set the option"
        " transactionLog or checkpointLocation to the new folder"
    )
