"""Planner and commit worker, and the driver of a job. What Spark keeps in a checkpoint.

Spark writes `offsets/<batch id>` before a batch runs, and `commits/<batch id>` after the sink's
`commit` has returned. So the latter proves that each transaction was ended (design/recovery.md).
"""

import hashlib
import json
import re
from dataclasses import dataclass
from typing import Any, Final

from pyarrow import fs

from spark_eos._checkpoint.file_source import files_between, log_offset
from spark_eos._log.location import table_uri
from spark_eos._protocol.offsets.offset_map import kafka_offsets
from spark_eos._protocol.offsets.topic_partition import Offsets
from spark_eos.errors import OptionError, RetriableError

_OPTION: Final = "checkpointLocation"
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The checkpoint of one query."""

    location: str

    def query_id(self) -> str:
        """The id that Spark gave to the query when it created the checkpoint."""
        content = self._read("metadata")
        if content is None:
            raise OptionError(
                "{option} '{location}' has no file 'metadata'. Set it to the checkpoint of this"
                " query, in a place that the driver's Python can reach",
                option=_OPTION,
                location=self.location,
            )
        return str(json.loads(content)["id"])

    def has_commit(self, batch_id: int) -> bool:
        """Whether the sink completed the batch. Newer files show it too: Spark removes old ones."""
        if self._read(f"commits/{batch_id}") is not None:
            return True
        return any(int(name) > batch_id for name in self._list("commits") if name.isdigit())

    def input_digest(self, batch_id: int) -> str:
        """A digest of the batch's end offsets, its watermark and the files of its file sources."""
        return self._input_digest(batch_id, with_files=True)

    def input_digest_of_version_2(self, batch_id: int) -> str:
        """The digest that the log has up to version 2 of its rows: without the files."""
        return self._input_digest(batch_id, with_files=False)

    def has_offsets(self, batch_id: int) -> bool:
        """Whether the batch's end offsets are still there. Spark removes old files."""
        return self._read(f"offsets/{batch_id}") is not None

    def kafka_offsets(self, batch_id: int) -> Offsets:
        """The end offsets of the batch in its Kafka sources, this project's or Spark's own."""
        found: Offsets = {}
        version, _metadata, *sources = self._offsets(batch_id)
        for i, source in enumerate(sources):
            for place, offset in kafka_offsets(_named(version, i, source)[1]).items():
                if found.setdefault(place, offset) != offset:
                    raise OptionError(
                        "two sources of the query read {topic}-{partition} and are at different"
                        " offsets ({first} and {second}). One {option} cannot have both. Remove"
                        " {option}, or read the topic once",
                        topic=place.topic,
                        partition=place.partition,
                        first=found[place],
                        second=offset,
                        option="group.id",
                    )
        return found

    def keep(self, name: str, value: str) -> str:
        """The value in the file `name`; writes `value` if there is none."""
        # Without a newline the file is of a driver that died while it wrote the file.
        kept, _, _ = (self._read(name) or "").rpartition("\n")
        if not kept:
            self._write(name, f"{value}\n")
        return kept or value

    def _input_digest(self, batch_id: int, *, with_files: bool) -> str:
        version, metadata, *sources = self._offsets(batch_id)
        # The rest of the metadata has the time when the batch was first planned.
        watermark = json.loads(metadata).get("batchWatermarkMs", 0)
        names = [_named(version, i, line) for i, line in enumerate(sources)] if with_files else []
        files = [file for name, end in names for file in self._files(batch_id, name, end)]
        text = "\n".join([str(watermark), *sources, *files])
        return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()

    def _files(self, batch_id: int, name: str, end: str) -> list[str]:
        """The files that the batch reads from a file source. None from a source of another kind."""
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
        """The end of the previous batch. After a restart one batch may have several numbers."""
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
                "{option} '{location}' has no file 'offsets/{batch_id}' for the running batch",
                option=_OPTION,
                location=self.location,
                batch_id=batch_id,
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
            raise self._failed("read", error) from error

    def _write(self, name: str, content: str) -> None:
        filesystem, root = self._folder()
        try:
            with filesystem.open_output_stream(f"{root}/{name}") as stream:
                stream.write(content.encode())
        except OSError as error:
            raise self._failed(f"write the file '{name}' to", error) from error

    def _list(self, name: str) -> list[str]:
        filesystem, root = self._folder()
        selected = fs.FileSelector(f"{root}/{name}", allow_not_found=True)
        try:
            return [info.base_name for info in filesystem.get_file_info(selected)]
        except OSError as error:
            raise self._failed("read", error) from error

    def _failed(self, action: str, error: OSError) -> RetriableError:
        return RetriableError(
            "the driver's Python cannot {action} {option} '{location}': {reason}. Start the query"
            " again when it can",
            action=action,
            option=_OPTION,
            location=self.location,
            reason=str(error),
        )

    def _folder(self) -> tuple[Any, str]:
        """The folder for Arrow. Hadoop's form is `file:/a b`, with nothing escaped, and `s3a://`."""
        location = table_uri(self.location).rstrip("/")
        if not _SCHEME.match(location):
            return fs.LocalFileSystem(), location
        filesystem, root = fs.FileSystem.from_uri(re.sub(r"^s3[an]://", "s3://", location))
        return filesystem, root.rstrip("/")


def _named(version: str, index: int, line: str) -> tuple[str, str]:
    """A line's source and offset. Version 2 (streaming.offsetLog.formatVersion) names sources."""
    name, _, offset = line.partition(":")
    return (name, offset) if version == "v2" else (str(index), line)
