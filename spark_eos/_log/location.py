"""Driver and snapshot reader. Open the Delta table of the log, or create it.

The path may hold a foreign table, files that are no table, or the log of a newer release. Each case
is detected before a row is written. Two drivers that create the log at the same time get one table.
"""

import os
from collections.abc import Mapping
from contextlib import suppress
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
# A start detects by the query's epoch if an older state of the folder was put back.
PUT_BACK: Final = (
    "Put the whole folder back as it was, and start the query again. If it is lost, move away what"
    " is left of it. The next start says how to go on without it"
)
VERSION_PROPERTY: Final = "spark-eos.recordVersion"

# A retry costs a few milliseconds. With 20 queries on a table some commits need several.
COMMIT_RETRIES: Final = 200

# A checkpoint or a clean-up would make an append slow. Maintenance does both, see retention.py.
NO_HOOKS: Final = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)

PROPERTIES: Final[Mapping[str, str]] = {
    VERSION_PROPERTY: str(RECORD_VERSION),
    # Refuses a DELETE by hand. Rewrites that change no data are still allowed.
    "delta.appendOnly": "true",
    # Only what selects files: statistics are a part of the cost of each commit.
    "delta.dataSkippingStatsColumns": "version,query_id,batch_id,entry_timestamp",
    # Minutes and not Delta's week: a checkpoint carries all tombstones of this time. The files
    # themselves stay longer, see vacuum.py.
    "delta.deletedFileRetentionDuration": "interval 10 minutes",
    # Maintenance removes commits. It does so by age only on object stores, see retention.py.
    "delta.enableExpiredLogCleanup": "false",
    "delta.logRetentionDuration": "interval 10 minutes",
}


def table_uri(location: str) -> str:
    """The location as deltalake takes it. Hadoop writes `file:/a b` and escapes nothing."""
    for scheme in ("file://localhost/", "file:///", "file:/"):
        if location.startswith(scheme):
            return "/" + location.removeprefix(scheme).lstrip("/")
    return location


def open_table(location: str, storage_options: Mapping[str, str]) -> DeltaTable:
    """Open the log's table and check it. Create it if there is nothing at the location."""
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
    """The error for a log that does not open. On an object store the network may be the cause."""
    if os.path.isfile(table_uri(location)):
        return OptionError(
            "the transaction log '{location}' is a file. Set the option {option} to a folder",
            location=location,
            option="transactionLog",
        )
    if isinstance(error, OSError) or "://" in table_uri(location):
        return RetriableError(
            "the transaction log at {location} cannot be read: {cause}. Start the query again when"
            " the driver's Python can read it",
            location=location,
            cause=cause_of(error),
        )
    return CorruptLogError(
        "the transaction log at {location} cannot be opened: {cause}. Files of its folder"
        " _delta_log were deleted or changed by hand, or lost with a disk. {advice}",
        location=location,
        cause=cause_of(error),
        advice=PUT_BACK,
    )


def missing_error(location: str) -> SparkEosError:
    """The error for a log that this process had open and that is gone."""
    return CorruptLogError(
        "the transaction log at {location} was deleted or moved after its query had opened it."
        " {advice}",
        location=location,
        advice=PUT_BACK,
    )


def has_own_columns(table: DeltaTable) -> bool:
    """Whether the table has exactly the columns of this release. The log of an older release has
    fewer. A person may have added columns: they stay empty.
    """
    return _columns(table) == list(SCHEMA.names)


def _columns(table: DeltaTable) -> list[str]:
    return [field.name for field in table.schema().fields]


def check_exists(location: str, storage_options: Mapping[str, str]) -> None:
    """Raise if there is no Delta table: a reader must not create a log."""
    if not _is_table(table_uri(location), storage_options):
        raise _no_log(location)


def is_log(location: str, storage_options: Mapping[str, str]) -> bool:
    """Whether the Delta table is a transaction log, or may be one because it cannot be read."""
    try:
        table = DeltaTable(table_uri(location), storage_options=dict(storage_options))
    except DeltaError:
        return True
    return VERSION_PROPERTY in table.metadata().configuration


def log_exists(location: str, storage_options: Mapping[str, str]) -> bool:
    """Whether there is a Delta table. Raise if other files are there: no log can be created."""
    uri, options = table_uri(location), dict(storage_options)
    if _is_table(uri, options):
        return True
    try:
        _check_empty(location, uri, options)
    except ForeignTableError:
        if not _is_table(uri, options):  # it may have been created since the first look
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
        "{option} '{location}' is no Delta table. Give the log of the query whose output is read,"
        " by default <checkpointLocation>/transaction_state",
        option="transactionLog",
        location=location,
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
            # With a retry, the slower of two creators would write the metadata again. That is a
            # conflict for every append under way.
            commit_properties=CommitProperties(max_commit_retries=0),
            raise_if_key_not_exists=False,
        )
    except Exception as error:
        # Another driver may have created the table in the meantime.
        with suppress(TableNotFoundError, OSError):
            return DeltaTable(uri, storage_options=options)
        raise RetriableError(
            "the transaction log at {location} cannot be created: {cause}. Let the driver's user"
            " write there, see whether the disk is full, or set the option {option} to another"
            " path. Then start the query again",
            location=location,
            cause=cause_of(error),
            option="transactionLog",
        ) from error


def _check_empty(location: str, uri: str, options: dict[str, str]) -> None:
    try:
        names = FileStore(uri, options).list_names()
    except TableNotFoundError:
        return  # there is no folder yet
    # Another driver that creates the log at this moment may have made `_delta_log` already.
    strange = [n for n in names if n != _COMMITS and not PurePosixPath(n).name.startswith(".")]
    if any(is_data_file(name) for name in strange):
        raise CorruptLogError(
            "the transaction log at {location} has lost its folder _delta_log, which says what was"
            " decided. Only its data files are left. {advice}",
            location=location,
            advice=PUT_BACK,
        )
    if strange:
        raise ForeignTableError(
            "{location} is no Delta table and is not empty (found {found!r} and {more} more). Set"
            " the option {option} to an empty or new path",
            location=location,
            found=strange[0],
            more=len(strange) - 1,
            option="transactionLog",
        )


def _check_table(location: str, table: DeltaTable) -> None:
    metadata = table.metadata()
    found = metadata.configuration.get(VERSION_PROPERTY)
    if found is None or not found.isdigit():
        raise ForeignTableError(
            "{location} holds a Delta table that is not a transaction log (name {name!r}, columns"
            " {columns}). Set the option {option} to another path",
            location=location,
            name=metadata.name,
            columns=_columns(table)[:5],
            option="transactionLog",
        )
    check_record_version(int(found), location)
    check_record_version(max((file.max_version for file in live_files(table)), default=0), location)
    missing = {*SCHEMA.names} - {*_columns(table)} - ADDED_COLUMNS.keys()
    if missing:
        raise ForeignTableError(
            "the transaction log at {location} lacks the columns {columns}. It was changed by hand."
            " Set the option {option} to another path",
            location=location,
            columns=sorted(missing),
            option="transactionLog",
        )
