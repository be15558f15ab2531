"""Driver and command line: the data files of the log, with the statistics that select them.

A file is found by what its add action says of it, never by reading it. The statistics are those of
four columns; timestamps in them are cut to milliseconds, by Delta's protocol, so the upper bound is
widened again before it is compared.
"""

import json
import re
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable

# The same class as deltalake.fs.DeltaStorageHandler without its pyarrow wrapper, whose output
# stream cannot take what pyarrow 26 hands to it.
from deltalake._internal import DeltaFileSystemHandler
from deltalake.transaction import AddAction, RemoveAction
from pyarrow.fs import FileType

from spark_eos._log import durable
from spark_eos._log.record import EPOCH, SCHEMA, from_table, to_rows, to_schema
from spark_eos._protocol.transactions.transaction import TransactionRecord
from spark_eos.errors import CorruptLogError

_MILLISECOND = timedelta(milliseconds=1)
_COMPACTED: Final = re.compile(r"compacted-(\d+)-.*\.parquet")
_UUID: Final = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
# The names of the data files that this log writes: delta-rs those of appends, `FileStore.write`
# those of rewrites.
_DATA_FILE: Final = re.compile(
    rf"part-\d{{5}}-{_UUID}-c\d{{3}}\.zstd\.parquet|compacted-\d+-{_UUID}\.parquet"
)
_NO_LEVEL: Final = 99
_SMALL_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveFile:
    """A data file of a snapshot, by its add action."""

    path: str
    size: int
    records: int
    max_version: int
    min_query_id: str | None
    max_query_id: str | None
    min_batch_id: int | None
    max_batch_id: int | None
    min_entry: datetime
    max_entry: datetime

    @property
    def level(self) -> int:
        """How often its rows were compacted: 0 is a file of one append."""
        match = _COMPACTED.fullmatch(self.path)
        if match:
            return int(match[1])
        # Somebody's own OPTIMIZE may have written a big file: that one is left alone.
        return 0 if self.size < _SMALL_BYTES else _NO_LEVEL

    def may_hold(self, query_id: str, since: datetime, until: datetime) -> bool:
        """Whether rows of the query with an entry timestamp in this range can be in the file."""
        return (
            self._may_hold_query(query_id) and self.min_entry <= until and self.max_entry >= since
        )

    def may_hold_batch(self, query_id: str, batch_id: int) -> bool:
        """Whether rows of this batch can be in the file."""
        low, high = self.min_batch_id, self.max_batch_id
        in_range = low is None or high is None or low <= batch_id <= high
        return in_range and self._may_hold_query(query_id)

    def may_hold_from(self, query_id: str, batch_id: int) -> bool:
        """Whether rows of this batch or a later one can be in the file."""
        high = self.max_batch_id
        return (high is None or high >= batch_id) and self._may_hold_query(query_id)

    def _may_hold_query(self, query_id: str) -> bool:
        low, high = self.min_query_id, self.max_query_id
        return low is None or high is None or low <= query_id <= high


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file in the table's folder, whether or not a snapshot has it."""

    name: str
    modified: datetime


def live_files(table: DeltaTable) -> list[LiveFile]:
    """The files of the table's snapshot. Costs no I/O."""
    # Not pa.table(): that imports pandas, and a third of a second with it.
    actions = pa.RecordBatchReader.from_stream(table.get_add_actions(flatten=True))
    return [_live_file(action) for action in to_rows(actions.read_all())]


def is_data_file(name: str) -> bool:
    """Whether this log gives such names to its data files."""
    return _DATA_FILE.fullmatch(name) is not None


def _live_file(action: Mapping[str, Any]) -> LiveFile:
    max_entry = action.get("max.entry_timestamp")
    return LiveFile(
        path=action["path"],
        size=action["size_bytes"],
        records=action.get("num_records") or 0,
        max_version=action.get("max.version") or 0,
        min_query_id=action.get("min.query_id"),
        max_query_id=action.get("max.query_id"),
        min_batch_id=action.get("min.batch_id"),
        max_batch_id=action.get("max.batch_id"),
        min_entry=action.get("min.entry_timestamp") or EPOCH,
        max_entry=max_entry + _MILLISECOND if max_entry else datetime.max.replace(tzinfo=UTC),
    )


class FileStore:
    """Reads and writes files in the table's folder, on whatever store it is."""

    def __init__(self, uri: str, storage_options: Mapping[str, str]) -> None:
        self.uri = uri
        self.options = dict(storage_options)
        self._handler = DeltaFileSystemHandler(uri, self.options)
        self._folder = Path(uri)
        self._synced_version = -1
        self.is_local = "://" not in uri

    def sync(self, version: int) -> None:
        """Return when no power cut can take away a commit up to this one, whoever wrote it."""
        if self.is_local:
            if self._synced_version < 0:
                durable.sync_path(self._folder)
            durable.sync_commits(self._folder, after=self._synced_version, upto=version)
            self._synced_version = version

    def sync_checkpoint(self, version: int) -> None:
        """The same for a checkpoint."""
        if self.is_local:
            durable.sync_checkpoint(self._folder, version)

    def commit_mark(self, version: int) -> tuple[int, ...] | None:
        """What tells a commit's file from another one of the same version; None where it is gone.

        On a local disk only. Elsewhere nothing is told, and it would cost a request.
        """
        if not self.is_local:
            return ()
        try:
            found = (self._folder / "_delta_log" / f"{version:020}.json").stat()
        except FileNotFoundError:
            return None
        return (found.st_ino, found.st_mtime_ns, found.st_size)

    def open_table(self) -> DeltaTable:
        """The table as it is now."""
        return DeltaTable(self.uri, storage_options=self.options)

    def list_names(self, folder: str = "") -> list[str]:
        """Names directly in `folder`, files and folders, without the path before them."""
        found = self._handler.get_file_info_selector(folder, allow_not_found=True, recursive=False)
        return [info.base_name for info in found]

    def list_data_files(self) -> list[StoredFile]:
        """The data files that this log wrote, live or not: by their names, directly in the folder.

        No folder is entered.
        """
        found = self._handler.get_file_info_selector("", allow_not_found=True, recursive=False)
        files = (info for info in found if info.type is FileType.File)
        return [StoredFile(i.base_name, i.mtime) for i in files if is_data_file(i.base_name)]

    def list_entries(self, folder: str) -> tuple[set[str], set[str]]:
        """The names of the files and of the folders directly in `folder`."""
        found = self._handler.get_file_info_selector(folder, allow_not_found=True, recursive=False)
        files = {info.base_name for info in found if info.type is FileType.File}
        return files, {info.base_name for info in found} - files

    def has_file(self, path: str) -> bool:
        """Whether there is such a file. One request, which reads nothing."""
        try:
            self._handler.open_input_file(path)
        except FileNotFoundError:
            return False
        return True

    def read_text(self, path: str) -> str | None:
        """The content of a small file; None if there is none."""
        try:
            source = self._handler.open_input_file(path)
        except FileNotFoundError:
            return None
        return source.read(source.size()).decode()

    def write_text(self, path: str, text: str) -> None:
        """Write a small file, in the place of the one that is there."""
        self._write(path, text.encode())

    def delete(self, paths: Iterable[str]) -> None:
        """Delete files, in this order. One that is gone already is no error."""
        for path in paths:
            try:
                self._handler.delete_file(path)
            except FileNotFoundError:
                continue

    def read_table(self, files: Iterable[LiveFile]) -> Any:
        """All rows of the files, as one Arrow table."""
        tables = [self._read(file) for file in files]
        return pa.concat_tables(tables) if tables else SCHEMA.empty_table()

    def read(self, files: Iterable[LiveFile]) -> list[TransactionRecord]:
        """All records of the files, newest first."""
        return from_table(self.read_table(files))

    def _read(self, file: LiveFile) -> Any:
        try:
            source = self._handler.open_input_file(file.path)
        except FileNotFoundError as error:
            raise CorruptLogError(
                f"the transaction log at {self.uri} has lost its data file '{file.path}': it was"
                " deleted by hand, or lost with a disk. Put it back, from a backup for example, and"
                " start the query again. If it is lost, see whether the rows of the last batch are"
                " in the topic, write what is missing by hand, and start with a new"
                " checkpointLocation and startingOffsets behind that"
            ) from error
        data = pa.py_buffer(source.read(file.size))
        rows = pq.ParquetFile(pa.BufferReader(data)).read(use_threads=False)
        return to_schema(rows)

    def write(self, rows: Any, *, level: int, data_change: bool = False) -> AddAction:
        """Write rows to a new file, sorted, and return the action that would add it."""
        rows = rows.sort_by([(name, "ascending") for name in ("query_id", "batch_id")])
        sink = pa.BufferOutputStream()
        pq.write_table(rows, sink, compression="zstd")
        data = sink.getvalue().to_pybytes()
        path = f"compacted-{level}-{uuid.uuid4()}.parquet"
        self._write(path, data)
        return AddAction(
            path=path,
            size=len(data),
            partition_values={},
            modification_time=time.time_ns() // 1_000_000,
            data_change=data_change,
            stats=_statistics(rows),
        )

    def _write(self, path: str, data: bytes) -> None:
        stream: Any = self._handler.open_output_stream(path)
        stream.write(data)
        stream.close()


def removals(files: Sequence[LiveFile]) -> list[RemoveAction]:
    """The actions that take files out of the table.

    Without `data_change`, always: delta-rs counts a removal that changes data as a conflict with
    every append under way, and drivers must not fail because somebody cleaned up.
    """
    now = time.time_ns() // 1_000_000
    return [RemoveAction(file.path, False, now, file.size, {}) for file in files]


def _statistics(rows: Any) -> str:
    low: dict[str, Any] = {}
    high: dict[str, Any] = {}
    for name in ("version", "query_id", "batch_id", "entry_timestamp"):
        values = pc.min_max(rows[name]).as_py()
        low[name], high[name] = values["min"], values["max"]
    low["entry_timestamp"] = _timestamp(low["entry_timestamp"])
    high["entry_timestamp"] = _timestamp(high["entry_timestamp"])
    nulls = dict.fromkeys(low, 0)
    return json.dumps(
        {"numRecords": rows.num_rows, "minValues": low, "maxValues": high, "nullCount": nulls}
    )


def _timestamp(value: datetime) -> str:
    return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
