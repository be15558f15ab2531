"""Driver and command line: open the Delta table of the log, or create it.

Nothing here trusts the path: it may hold a table of somebody else, files that are no table, or a
log of a newer release, and each is told apart before a row is written. Two drivers may create the
log at the same time; both end with the one table.
"""

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Final

from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, Schema
from deltalake.exceptions import TableNotFoundError

from spark_eos.errors import ForeignTableError, OptionError
from spark_eos.log.files import FileStore, live_files
from spark_eos.log.record import ADDED_COLUMNS, SCHEMA, check_version
from spark_eos.protocol.transaction import RECORD_VERSION

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
        table = _create(uri, options)
        FileStore(uri, options).sync(table.version())
    _check_table(location, table)
    return table


def missing_columns(table: DeltaTable) -> set[str]:
    """The columns of the log that the table has not."""
    return set(SCHEMA.names) - {field.name for field in table.schema().fields}


def check_exists(location: str, storage_options: Mapping[str, str]) -> None:
    """Raise where there is no Delta table: a reader must not create a log."""
    try:
        DeltaTable(table_uri(location), storage_options=dict(storage_options))
    except TableNotFoundError:
        raise OptionError(
            f"transactionLog '{location}' is no Delta table: give the log of the query whose output"
            " is read, by default <checkpointLocation>/transaction_state"
        ) from None


def _create(uri: str, options: dict[str, str]) -> DeltaTable:
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
    except Exception:
        # Somebody else may have been faster. If so, theirs is the table; if not, the cause stands.
        try:
            return DeltaTable(uri, storage_options=options)
        except TableNotFoundError:
            pass
        raise


def _check_empty(location: str, uri: str, options: dict[str, str]) -> None:
    try:
        names = FileStore(uri, options).list_names()
    except TableNotFoundError:
        return  # the folder is not there yet
    # A creator at work has made `_delta_log` already.
    strange = [n for n in names if n != "_delta_log" and not PurePosixPath(n).name.startswith(".")]
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
    check_version(int(found), location)
    check_version(max((file.max_version for file in live_files(table)), default=0), location)
    missing = missing_columns(table) - ADDED_COLUMNS.keys()
    if missing:
        raise ForeignTableError(
            f"the transaction log at {location} lacks the columns {sorted(missing)}. It was changed"
            " by hand: set the option transactionLog to another path"
        )
