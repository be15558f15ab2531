"""Task. Consumed records into one Arrow record batch, column by column."""

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
    """Rows as the schema of a read has them; `headers` where the schema has it."""
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
    """A producer that writes nanoseconds would get a time of another age."""
    wrong = np.flatnonzero((millis > _LAST_MS) | (millis < -_LAST_MS))
    if wrong.size:
        raise SparkEosError(
            f"{source.topic}-{source.partition}, offset {offsets[wrong[0]]}: the timestamp "
            f"{millis[wrong[0]]} is beyond what Spark can show. Kafka's timestamps are "
            "milliseconds: correct the producer, and start behind this record"
        )


def _headers(headers: list[Any]) -> pa.Array:
    """A record without headers has null, as in Spark's own connector."""
    return pa.array(
        [h and [{"key": key, "value": value} for key, value in h] for h in headers],
        pa.list_(_HEADER),
    )
