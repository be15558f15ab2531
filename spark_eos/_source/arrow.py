"""Task worker. Convert consumed records into an Arrow record batch, column by column."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from spark_eos._kafka.consume import records as fields
from spark_eos._protocol.offsets.topic_partition import OffsetRange
from spark_eos.errors import SparkEosError

_HEADER = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])
_MICROSECONDS: Final = 1000
_LAST_MS: Final = (2**63 - 1) // _MICROSECONDS


def record_batch(source: OffsetRange, records: Sequence[Any], schema: pa.Schema) -> pa.RecordBatch:
    """The records as rows of `schema`, which may have the column `headers`."""
    taken = list(records)
    count = len(taken)
    offsets = fields.offsets(taken)
    millis, types = fields.timestamps(taken)
    _check_timestamps(source, millis, offsets)
    columns = [
        pa.array(fields.keys(taken), pa.binary()),
        pa.array(fields.values(taken), pa.binary()),
        pa.repeat(pa.scalar(source.topic, pa.string()), count),
        pa.repeat(pa.scalar(source.partition, pa.int32()), count),
        pa.array(offsets),
        pa.array(millis * _MICROSECONDS).cast(schema.field("timestamp").type),
        pa.array(types),
    ]
    if "headers" in schema.names:
        columns.append(_headers(fields.headers(taken)))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _check_timestamps(source: OffsetRange, millis: Any, offsets: Any) -> None:
    """Raise where a timestamp, for example one in nanoseconds, overflows Spark's microseconds."""
    wrong = np.flatnonzero((millis > _LAST_MS) | (millis < -_LAST_MS))
    if wrong.size:
        raise SparkEosError(
            "{topic}-{partition}, offset {offset}: the timestamp {timestamp} is beyond Spark's"
            " range. Kafka's timestamps are in milliseconds. Correct the producer, and start after"
            " this record",
            topic=source.topic,
            partition=source.partition,
            offset=int(offsets[wrong[0]]),
            timestamp=int(millis[wrong[0]]),
        )


def _headers(headers: list[Any]) -> pa.Array:
    """Null for a record without headers, as in Spark's own connector."""
    return pa.array(
        [h and [{"key": key, "value": value} for key, value in h] for h in headers],
        pa.list_(_HEADER),
    )
