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

from spark_eos.errors import OptionError, RetriableError
from spark_eos.log.table import table_uri
from spark_eos.protocol.offset_limit import Offsets
from spark_eos.protocol.offset_map import kafka_offsets

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
        """A short name for the input of a batch: its end offsets and its watermark.

        Not the whole file: its metadata line holds the time at which the batch was first planned.
        """
        _version, metadata, *sources = self._offsets(batch_id)
        watermark = json.loads(metadata).get("batchWatermarkMs", 0)
        text = "\n".join([str(watermark), *sources])
        return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()

    def kafka_offsets(self, batch_id: int) -> Offsets:
        """Where the batch ends in the topics of its Kafka sources, this project's or Spark's own.

        Sources of other kinds (files, a rate) have no partitions and are left out.
        """
        found: Offsets = {}
        version, _metadata, *sources = self._offsets(batch_id)
        for source in sources:
            # Version 2 (spark.sql.streaming.offsetLog.formatVersion) names each source.
            line = source.partition(":")[2] if version == "v2" else source
            for partition, offset in kafka_offsets(line).items():
                if found.setdefault(partition, offset) != offset:
                    raise OptionError(
                        f"two sources of the query read {partition[0]}-{partition[1]} and are at"
                        f" different offsets ({found[partition]} and {offset}): one group.id cannot"
                        " say both. Remove group.id, or read the topic once"
                    )
        return found

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
