"""Driver and snapshot reader. The data files of the log, with the statistics that select them.

A file is selected by its add action and never read for that. Delta's protocol cuts timestamps in
the statistics to milliseconds, so the upper bound is widened before it is compared.
"""

import json
import re
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable

# Not deltalake.fs.DeltaStorageHandler: its output stream refuses the buffers of pyarrow 26.
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
# Data files of this log: delta-rs names those of appends, `FileStore.write` those of rewrites.
_DATA_FILE: Final = re.compile(
    rf"part-\d{{5}}-{_UUID}-c\d{{3}}\.zstd\.parquet|compacted-\d+-{_UUID}\.parquet"
)
_NO_LEVEL: Final = 99
_SMALL_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveFile:
    """A data file of a snapshot, as its add action describes it."""

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
        if match := _COMPACTED.fullmatch(self.path):
            return int(match[1])
        # A big file may be from an OPTIMIZE by hand. It is left alone.
        return 0 if self.size < _SMALL_BYTES else _NO_LEVEL

    def may_hold(self, query_id: str, since: datetime, until: datetime) -> bool:
        """Whether the file can hold rows of the query with an entry timestamp in this range."""
        in_range = self.min_entry <= until and self.max_entry >= since
        return in_range and self._may_hold_query(query_id)

    def may_hold_batch(self, query_id: str, batch_id: int) -> bool:
        """Whether the file can hold rows of this batch."""
        low, high = self.min_batch_id, self.max_batch_id
        in_range = low is None or high is None or low <= batch_id <= high
        return in_range and self._may_hold_query(query_id)

    def may_hold_from(self, query_id: str, batch_id: int) -> bool:
        """Whether the file can hold rows of this batch or a later one."""
        high = self.max_batch_id
        return (high is None or high >= batch_id) and self._may_hold_query(query_id)

    def _may_hold_query(self, query_id: str) -> bool:
        low, high = self.min_query_id, self.max_query_id
        return low is None or high is None or low <= query_id <= high


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file in the table's folder. It need not be in a snapshot."""

    name: str
    modified: datetime


def live_files(table: DeltaTable) -> list[LiveFile]:
    """The files of the table's snapshot. Costs no I/O."""
    # Not pa.table(): it imports pandas, which takes a third of a second.
    actions = pa.RecordBatchReader.from_stream(table.get_add_actions(flatten=True))
    return [_live_file(action) for action in to_rows(actions.read_all())]


def is_data_file(name: str) -> bool:
    """Whether the name is that of a data file of this log."""
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
    """The files in the table's folder, on a local disk or an object store."""

    def __init__(self, uri: str, storage_options: Mapping[str, str]) -> None:
        self.uri = uri
        self.options = dict(storage_options)
        self._handler = DeltaFileSystemHandler(uri, self.options)
        self._folder = Path(uri)
        self._synced_version = -1
        self.is_local = "://" not in uri

    def sync(self, version: int) -> None:
        """Return when every commit up to this one, of any process, outlives a power cut."""
        if self.is_local:
            if self._synced_version < 0:
                durable.sync_path(self._folder)
            durable.sync_commits(self._folder, after=self._synced_version, upto=version)
            self._synced_version = version

    def sync_checkpoint(self, version: int) -> None:
        """Return when the checkpoint outlives a power cut."""
        if self.is_local:
            durable.sync_checkpoint(self._folder, version)

    def commit_mark(self, version: int) -> tuple[int, ...] | None:
        """What identifies a commit's file among others of its version; None if it is gone."""
        if not self.is_local:  # there it would cost a request
            return ()
        try:
            found = (self._folder / "_delta_log" / f"{version:020}.json").stat()
        except FileNotFoundError:
            return None
        return (found.st_ino, found.st_mtime_ns, found.st_size)

    def open_table(self) -> DeltaTable:
        """The table at its newest version."""
        return DeltaTable(self.uri, storage_options=self.options)

    def list_names(self, folder: str = "") -> list[str]:
        """The names of the files and folders directly in `folder`."""
        found = self._handler.get_file_info_selector(folder, allow_not_found=True, recursive=False)
        return [info.base_name for info in found]

    def list_data_files(self) -> list[StoredFile]:
        """The data files that this log wrote, live or not. Looks into no folder below."""
        found = self._handler.get_file_info_selector("", allow_not_found=True, recursive=False)
        files = (info for info in found if info.type is FileType.File)
        return [StoredFile(i.base_name, i.mtime) for i in files if is_data_file(i.base_name)]

    def list_entries(self, folder: str) -> tuple[set[str], set[str]]:
        """The names of the files, and those of the folders, directly in `folder`."""
        found = self._handler.get_file_info_selector(folder, allow_not_found=True, recursive=False)
        files = {info.base_name for info in found if info.type is FileType.File}
        return files, {info.base_name for info in found} - files

    def has_file(self, path: str) -> bool:
        """Whether the file exists. Costs one request, which reads nothing."""
        try:
            self._handler.open_input_file(path)
        except FileNotFoundError:
            return False
        return True

    def read_text(self, path: str) -> str | None:
        """The content of a small file; None if it does not exist."""
        try:
            source = self._handler.open_input_file(path)
        except FileNotFoundError:
            return None
        return source.read(source.size()).decode()

    def write_text(self, path: str, text: str) -> None:
        """Write or replace a small file."""
        self._write(path, text.encode())

    def delete(self, paths: Iterable[str]) -> None:
        """Delete files in this order. It is no error if one is gone."""
        for path in paths:
            with suppress(FileNotFoundError):
                self._handler.delete_file(path)

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
                "the transaction log at {location} has lost its data file '{file}': it was deleted"
                " by hand, or lost with a disk. Put it back, from a backup for example, and start"
                " the query again. If it is lost, see whether the rows of the last batch are in the"
                " topic, and write what is missing by hand. Then start with a new"
                " checkpointLocation, and with startingOffsets after these rows",
                location=self.uri,
                file=file.path,
            ) from error
        data = pa.py_buffer(source.read(file.size))
        rows = pq.ParquetFile(pa.BufferReader(data)).read(use_threads=False)
        return to_schema(rows)

    def write(self, rows: Any, *, level: int, data_change: bool = False) -> AddAction:
        """Write rows to a new file, sorted. Return the action that adds it to the table."""
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
    """The actions that take files out of the table."""
    # Without `data_change`: else the removal is a conflict with every append under way.
    now = time.time_ns() // 1_000_000
    return [RemoveAction(file.path, False, now, file.size, {}) for file in files]


def _statistics(rows: Any) -> str:
    names = ("version", "query_id", "batch_id", "entry_timestamp")
    bounds = {name: pc.min_max(rows[name]).as_py() for name in names}
    times = bounds["entry_timestamp"]
    for end in ("min", "max"):
        times[end] = times[end].astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
    return json.dumps(
        {
            "numRecords": rows.num_rows,
            "minValues": {name: bounds[name]["min"] for name in names},
            "maxValues": {name: bounds[name]["max"] for name in names},
            "nullCount": dict.fromkeys(names, 0),
        }
    )
