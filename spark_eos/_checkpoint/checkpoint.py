"""Planner and commit worker. What Spark keeps of a query in its checkpoint, read only.

`metadata` holds the query id, `offsets/<batch id>` the end offsets of a batch (written before it
runs), `commits/<batch id>` says that the sink's `commit` returned. Spark writes them in this
order, so a file in `commits/` proves that each transaction of that batch was ended.
"""

import hashlib
import json
import re
from dataclasses import dataclass
from typing import Any

from pyarrow import fs

from spark_eos._checkpoint.file_source import files_between, log_offset
from spark_eos._log.location import table_uri
from spark_eos._protocol.offsets.offset_map import kafka_offsets
from spark_eos._protocol.offsets.topic_partition import Offsets
from spark_eos.errors import OptionError, RetriableError

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The checkpoint of one query."""

    location: str

    def query_id(self) -> str:
        """The id that Spark gave to the query when the checkpoint was made."""
        content = self._read("metadata")
        if content is None:
            raise OptionError(
                f"checkpointLocation '{self.location}' has no file 'metadata': it is not the"
                " checkpoint of this query, or it is not reachable from the driver's Python"
            )
        return str(json.loads(content)["id"])

    def has_commit(self, batch_id: int) -> bool:
        """Whether Spark knows that the sink completed this batch.

        Spark removes old files, so a newer one says it too: batches run one after the other.
        """
        if self._read(f"commits/{batch_id}") is not None:
            return True
        return any(int(name) > batch_id for name in self._list("commits") if name.isdigit())

    def input_digest(self, batch_id: int) -> str:
        """A short name for the input of a batch: its end offsets, its watermark, and the files that
        a file source has behind its offset.

        Not the whole file: its metadata line holds the time at which the batch was first planned.
        """
        return self._input_digest(batch_id, self._offsets(batch_id), with_files=True)

    def input_digest_of_version_2(self, batch_id: int) -> str:
        """The same as rows of the log have it up to version 2: without the files."""
        return self._input_digest(batch_id, self._offsets(batch_id), with_files=False)

    def has_offsets(self, batch_id: int) -> bool:
        """Whether the end offsets of the batch are still there. Spark removes old files."""
        return self._read(f"offsets/{batch_id}") is not None

    def kafka_offsets(self, batch_id: int) -> Offsets:
        """Where the batch ends in the topics of its Kafka sources, this project's or Spark's own.

        Sources of other kinds (files, a rate) have no partitions and are left out.
        """
        found: Offsets = {}
        version, _metadata, *sources = self._offsets(batch_id)
        for i, source in enumerate(sources):
            _name, line = _named(version, i, source)
            for partition, offset in kafka_offsets(line).items():
                if found.setdefault(partition, offset) != offset:
                    raise OptionError(
                        f"two sources of the query read {partition[0]}-{partition[1]} and are at"
                        f" different offsets ({found[partition]} and {offset}): one group.id cannot"
                        " say both. Remove group.id, or read the topic once"
                    )
        return found

    def keep(self, name: str, value: str) -> str:
        """What the file `name` has kept since it was written; `value`, if that is now.

        A file without a line's end is of a driver that died while it wrote it.
        """
        kept, _, _ = (self._read(name) or "").rpartition("\n")
        if not kept:
            self._write(name, f"{value}\n")
        return kept or value

    def _input_digest(self, batch_id: int, lines: list[str], *, with_files: bool) -> str:
        version, metadata, *sources = lines
        watermark = json.loads(metadata).get("batchWatermarkMs", 0)
        names = [_named(version, i, line) for i, line in enumerate(sources)] if with_files else []
        files = [file for name, end in names for file in self._files(batch_id, name, end)]
        text = "\n".join([str(watermark), *sources, *files])
        return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()

    def _files(self, batch_id: int, name: str, end: str) -> list[str]:
        """The files that the batch has of a file source; nothing for a source of another kind."""
        last = log_offset(end)
        if last is None:
            return []
        folder = f"sources/{name}"
        return files_between(
            self._end_before(batch_id, name, last),
            last,
            names=self._list(folder),
            read=lambda file: self._read(f"{folder}/{file}"),
        )

    def _end_before(self, batch_id: int, name: str, last: int) -> int:
        """Where the batch before ended: a restart may have put several numbers into one batch."""
        if batch_id == 0:
            return -1
        content = self._read(f"offsets/{batch_id - 1}")
        version, _metadata, *sources = content.split("\n") if content else ("", "")
        ends = dict(_named(version, i, line) for i, line in enumerate(sources))
        found = log_offset(ends.get(name, "-"))
        return last - 1 if found is None else found

    def _offsets(self, batch_id: int) -> list[str]:
        content = self._read(f"offsets/{batch_id}")
        if content is None:
            raise OptionError(
                f"checkpointLocation '{self.location}' has no file 'offsets/{batch_id}' for the"
                " batch that runs"
            )
        return content.split("\n")

    def _read(self, name: str) -> str | None:
        filesystem, root = self._folder()
        try:
            with filesystem.open_input_stream(f"{root}/{name}") as stream:
                return bytes(stream.read()).decode()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._unreadable(error) from error

    def _write(self, name: str, content: str) -> None:
        filesystem, root = self._folder()
        try:
            with filesystem.open_output_stream(f"{root}/{name}") as stream:
                stream.write(content.encode())
        except OSError as error:
            raise RetriableError(
                f"the file '{name}' cannot be written to checkpointLocation '{self.location}' by"
                f" the driver's Python: {error}. Start the query again when it can"
            ) from error

    def _list(self, name: str) -> list[str]:
        filesystem, root = self._folder()
        selected = fs.FileSelector(f"{root}/{name}", allow_not_found=True)
        try:
            return [info.base_name for info in filesystem.get_file_info(selected)]
        except OSError as error:
            raise self._unreadable(error) from error

    def _unreadable(self, error: OSError) -> RetriableError:
        return RetriableError(
            f"checkpointLocation '{self.location}' cannot be read by the driver's Python: {error}."
            " Start the query again when it can"
        )

    def _folder(self) -> tuple[Any, str]:
        """As Arrow takes it. Hadoop writes `file:/a b`, with nothing escaped, and `s3a://`."""
        location = table_uri(self.location).rstrip("/")
        if not _SCHEME.match(location):
            return fs.LocalFileSystem(), location
        filesystem, root = fs.FileSystem.from_uri(re.sub(r"^s3[an]://", "s3://", location))
        return filesystem, root.rstrip("/")


def _named(version: str, index: int, line: str) -> tuple[str, str]:
    """A line of `offsets/<batch id>`: the name of the source, and its offset.

    Version 2 (spark.sql.streaming.offsetLog.formatVersion) names each source.
    """
    name, _, offset = line.partition(":")
    return (name, offset) if version == "v2" else (str(index), line)
