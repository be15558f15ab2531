"""Planner and commit worker. What Spark keeps of a query in its checkpoint, read only.

`metadata` holds the query id, `offsets/<batch id>` the end offsets of a batch (written before it
runs), `commits/<batch id>` says that the sink's `commit` returned. Spark writes them in this
order, so a file in `commits/` proves that each transaction of that batch was ended.
"""

import hashlib
import json
import re
from dataclasses import dataclass

from pyarrow import fs

from spark_eos.errors import OptionError

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
        """Whether Spark knows that the sink completed this batch."""
        return self._read(f"commits/{batch_id}") is not None

    def input_digest(self, batch_id: int) -> str:
        """A short name for the input of a batch: its end offsets and its watermark.

        Not the whole file: its metadata line holds the time at which the batch was first planned.
        """
        content = self._read(f"offsets/{batch_id}")
        if content is None:
            raise OptionError(
                f"checkpointLocation '{self.location}' has no file 'offsets/{batch_id}' for the"
                " batch that runs"
            )
        _version, metadata, *offsets = content.split("\n")
        watermark = json.loads(metadata).get("batchWatermarkMs", 0)
        text = "\n".join([str(watermark), *offsets])
        return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()

    def _read(self, name: str) -> str | None:
        if _SCHEME.match(self.location):
            filesystem, root = fs.FileSystem.from_uri(_hadoop_to_uri(self.location))
        else:
            filesystem, root = fs.LocalFileSystem(), self.location
        try:
            with filesystem.open_input_stream(f"{root.rstrip('/')}/{name}") as stream:
                return bytes(stream.read()).decode()
        except FileNotFoundError:
            return None


def _hadoop_to_uri(location: str) -> str:
    """Hadoop writes `file:/a` and `s3a://`, Arrow reads `file:///a` and `s3://`."""
    location = re.sub(r"^file:/+", "file:///", location)
    return re.sub(r"^s3[an]://", "s3://", location)
