"""Driver and command line: open the Delta table of the log, or create it.

Nothing here trusts the path: it may hold a table of somebody else, files that are no table, or a
log of a newer release, and each is told apart before a row is written. Two drivers may create the
log at the same time; both end with the one table.
"""

import os
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Final

from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, Schema
from deltalake.exceptions import DeltaError, TableNotFoundError

from spark_eos._log.cause import cause_of
from spark_eos._log.files import FileStore, is_data_file, live_files
from spark_eos._log.record import ADDED_COLUMNS, SCHEMA, check_record_version
from spark_eos._protocol.transactions.transaction import RECORD_VERSION
from spark_eos.errors import (
    CorruptLogError,
    ForeignTableError,
    OptionError,
    RetriableError,
    SparkEosError,
)

_COMMITS: Final = "_delta_log"
# What to do where files of the log are gone. An older state of it is found out by its epochs.
PUT_BACK: Final = (
    "Put the whole folder back as it was, and start the query again. If it is lost, move away what"
    " is left of it: the next start says how to go on without it"
)
VERSION_PROPERTY: Final = "spark-eos.recordVersion"

# Bounds the number of tombstones that a checkpoint carries, so it is minutes and not Delta's week.
# The files themselves stay for longer, see retention.py.
REMOVED_FILE_RETENTION: Final = "interval 10 minutes"
# Where commits are removed by age, which is on object stores.
COMMIT_RETENTION: Final = "interval 10 minutes"

# A retry costs a few milliseconds, and with 20 queries on a table some have to come again.
COMMIT_RETRIES: Final = 200

# A checkpoint or a clean-up inside an append would make that one slow, see retention.py.
NO_HOOKS: Final = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)

PROPERTIES: Final[Mapping[str, str]] = {
    VERSION_PROPERTY: str(RECORD_VERSION),
    # A guard against a DELETE by hand. Rewrites that change no data are still allowed.
    "delta.appendOnly": "true",
    # What pruning needs, and no more: the statistics are a part of each commit's cost.
    "delta.dataSkippingStatsColumns": "version,query_id,batch_id,entry_timestamp",
    "delta.deletedFileRetentionDuration": REMOVED_FILE_RETENTION,
    # Not by any writer after each commit, but as retention.py has it.
    "delta.enableExpiredLogCleanup": "false",
    "delta.logRetentionDuration": COMMIT_RETENTION,
}


def table_uri(location: str) -> str:
    """The location as deltalake takes it. Hadoop writes `file:/a b`, with nothing escaped."""
    for scheme in ("file://localhost/", "file:///", "file:/"):
        if location.startswith(scheme):
            return "/" + location.removeprefix(scheme).lstrip("/")
    return location


def open_table(location: str, storage_options: Mapping[str, str]) -> DeltaTable:
    """The log's table, created if there is nothing at the location; checked in any case."""
    uri = table_uri(location)
    options = dict(storage_options)
    try:
        table = DeltaTable(uri, storage_options=options)
    except TableNotFoundError:
        _check_empty(location, uri, options)
        table = _create(location, uri, options)
        FileStore(uri, options).sync(table.version())
    except (DeltaError, OSError) as error:
        raise unreadable_error(location, error) from error
    _check_table(location, table)
    return table


def unreadable_error(location: str, error: Exception) -> SparkEosError:
    """The error for a log that does not open. On a store, that may be the network."""
    if os.path.isfile(table_uri(location)):
        return OptionError(
            f"the transaction log '{location}' is a file. Set the option transactionLog to a folder"
        )
    if isinstance(error, OSError) or "://" in table_uri(location):
        return RetriableError(
            f"the transaction log at {location} cannot be read: {cause_of(error)}. Start the query"
            " again when the driver's Python can read it"
        )
    return CorruptLogError(
        f"the transaction log at {location} cannot be opened: {cause_of(error)}. Files of its"
        f" folder {_COMMITS} were deleted or changed by hand, or lost with a disk. {PUT_BACK}"
    )


def missing_error(location: str) -> SparkEosError:
    """The error for a log that was there when this process looked last."""
    return CorruptLogError(
        f"the transaction log at {location} was deleted or moved after its query had opened it."
        f" {PUT_BACK}"
    )


def missing_columns(table: DeltaTable) -> set[str]:
    """The columns of the log that the table has not."""
    return set(SCHEMA.names) - {field.name for field in table.schema().fields}


def has_own_columns(table: DeltaTable) -> bool:
    """Whether the table has the columns of this release and no other. A log of an older one has
    fewer, and a person may have added some: they stay empty.
    """
    names: list[str] = [field.name for field in table.schema().fields]
    return names == list(SCHEMA.names)


def check_exists(location: str, storage_options: Mapping[str, str]) -> None:
    """Raise where there is no Delta table: a reader must not create a log."""
    if not _is_table(table_uri(location), storage_options):
        raise _no_log(location)


def is_log(location: str, storage_options: Mapping[str, str]) -> bool:
    """Whether the Delta table at the location is a transaction log. One that cannot be read may be
    one.
    """
    try:
        table = DeltaTable(table_uri(location), storage_options=dict(storage_options))
    except DeltaError:
        return True
    return VERSION_PROPERTY in table.metadata().configuration


def log_exists(location: str, storage_options: Mapping[str, str]) -> bool:
    """Whether there is a Delta table; raise where something else is: no log can come there."""
    uri, options = table_uri(location), dict(storage_options)
    if _is_table(uri, options):
        return True
    try:
        _check_empty(location, uri, options)
    except ForeignTableError:
        if not _is_table(uri, options):  # else it was created since the first look
            raise _no_log(location) from None
        return True
    return False


def _is_table(uri: str, storage_options: Mapping[str, str]) -> bool:
    try:
        DeltaTable(uri, storage_options=dict(storage_options))
    except TableNotFoundError:
        return False
    return True


def _no_log(location: str) -> OptionError:
    return OptionError(
        f"transactionLog '{location}' is no Delta table: give the log of the query whose output"
        " is read, by default <checkpointLocation>/transaction_state"
    )


def _create(location: str, uri: str, options: dict[str, str]) -> DeltaTable:
    try:
        return DeltaTable.create(
            uri,
            Schema.from_arrow(SCHEMA),
            name="spark_eos transaction log",
            description="One row per transactional id and transition. Do not write by hand.",
            configuration=PROPERTIES,
            storage_options=options,
            # With a retry, the slower of two creators would write the table's metadata once more,
            # and that is a conflict for every append under way.
            commit_properties=CommitProperties(max_commit_retries=0),
            raise_if_key_not_exists=False,
        )
    except Exception as error:
        # Somebody else may have been faster. If so, theirs is the table; if not, the cause stands.
        try:
            return DeltaTable(uri, storage_options=options)
        except (TableNotFoundError, OSError):
            pass
        raise RetriableError(
            f"the transaction log at {location} cannot be created: {cause_of(error)}. Let the"
            " driver's user write there, see whether the disk is full, or set the option"
            " transactionLog to another path, and start the query again"
        ) from error


def _check_empty(location: str, uri: str, options: dict[str, str]) -> None:
    try:
        names = FileStore(uri, options).list_names()
    except TableNotFoundError:
        return  # the folder is not there yet
    # A creator at work has made `_delta_log` already.
    strange = [n for n in names if n != _COMMITS and not PurePosixPath(n).name.startswith(".")]
    if any(is_data_file(name) for name in strange):
        raise CorruptLogError(
            f"the transaction log at {location} has lost its folder {_COMMITS}, which says what was"
            f" decided: only its data files are left. {PUT_BACK}"
        )
    if strange:
        raise ForeignTableError(
            f"{location} is no Delta table and is not empty (found {strange[0]!r} and"
            f" {len(strange) - 1} more). Set the option transactionLog to an empty or new path"
        )


def _check_table(location: str, table: DeltaTable) -> None:
    metadata = table.metadata()
    found = metadata.configuration.get(VERSION_PROPERTY)
    if found is None or not found.isdigit():
        columns = [field.name for field in table.schema().fields]
        raise ForeignTableError(
            f"{location} holds a Delta table that is not a transaction log (name"
            f" {metadata.name!r}, columns {columns[:5]}). Set the option transactionLog to another"
            " path"
        )
    check_record_version(int(found), location)
    check_record_version(max((file.max_version for file in live_files(table)), default=0), location)
    missing = missing_columns(table) - ADDED_COLUMNS.keys()
    if missing:
        raise ForeignTableError(
            f"the transaction log at {location} lacks the columns {sorted(missing)}. It was changed"
            " by hand: set the option transactionLog to another path"
        )
