"""Task worker. Step 2: convert Arrow record batches into columns of Kafka records."""

from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from spark_eos._kafka.produce.rows import Headers, Rows
from spark_eos._protocol.offsets.topic_name import RULE, is_topic_name
from spark_eos.errors import OptionError

_COLUMNS: Final = ("key", "value", "topic", "partition", "timestamp", "headers")
_SHOWN: Final = 60  # letters of a wrong name in an error
_MICROSECONDS: Final = 1000
_NO_TIME: Final = -1 * _MICROSECONDS  # a read shows this for a record without a time (Kafka's -1)


def to_rows(batch: pa.RecordBatch, topic: str | None, *, include_headers: bool) -> Iterator[Rows]:
    """The rows of a record batch by topic, each topic in the order of the batch."""
    columns = {name.lower(): batch.column(i) for i, name in enumerate(batch.schema.names)}
    columns = {name: columns[name] for name in _COLUMNS if name in columns}
    if not include_headers:
        columns.pop("headers", None)
    if topic is not None:
        columns.pop("topic", None)
        yield _rows(topic, columns, batch.num_rows)
        return
    topics = columns.pop("topic")
    if topics.null_count:
        raise OptionError(
            "column 'topic' is null in {count} rows, but each row needs a topic. Filter these rows"
            " out, or set the option '{option}'",
            count=topics.null_count,
            option="topic",
        )
    for name in pc.unique(topics).to_pylist():
        if not is_topic_name(name):
            raise OptionError(
                "column 'topic' holds '{topic}': {rule}. Correct the column",
                topic=name[:_SHOWN],
                rule=RULE,
            )
        chosen = pc.equal(topics, name)
        of_topic = {key: column.filter(chosen) for key, column in columns.items()}
        yield _rows(name, of_topic, len(of_topic["value"]))


def _rows(topic: str, columns: dict[str, pa.Array], count: int) -> Rows:
    key, partition = columns.get("key"), columns.get("partition")
    timestamp, headers = columns.get("timestamp"), columns.get("headers")
    return Rows(
        topic=topic,
        keys=[None] * count if key is None else _bytes(key),
        values=_bytes(columns["value"]),
        partitions=None if partition is None else partition.to_pylist(),
        timestamps_ms=None if timestamp is None else _milliseconds(timestamp),
        headers=None if headers is None else [_headers(row) for row in headers.to_pylist()],
    )


def _bytes(column: pa.Array) -> list[bytes | None]:
    if pa.types.is_string(column.type):
        column = column.cast(pa.binary())
    elif pa.types.is_large_string(column.type):
        column = column.cast(pa.large_binary())
    values: list[bytes | None] = column.to_pylist()
    return values


def _milliseconds(column: pa.Array) -> list[int | None]:
    """Rounded down, as Spark does. Null stands for the current time."""
    # As numbers: for a timestamp Arrow would use the session's zone and compute in local time.
    micros = column.cast(pa.timestamp("us", tz=column.type.tz)).cast(pa.int64())
    micros = pc.if_else(pc.equal(micros, _NO_TIME), None, micros)
    earliest = pc.min(micros).as_py()
    if earliest is not None and earliest < 0:
        raise OptionError(
            "column 'timestamp' holds a time before 1970, which Kafka refuses. Correct it, or make"
            " it null for the current time"
        )
    if earliest is not None and earliest < _MICROSECONDS:
        raise OptionError(
            "column 'timestamp' holds 1970-01-01 00:00:00.000 UTC, which the Kafka client treats as"
            " no time. Correct it, or make it null for the current time"
        )
    values: list[int | None] = pc.divide(micros, _MICROSECONDS).to_pylist()
    return values


def _headers(row: list[dict[str, Any] | None] | None) -> Headers | None:
    if row is None:
        return None
    headers = [(header["key"], header["value"]) for header in row if header is not None]
    if len(headers) < len(row) or any(key is None for key, _ in headers):
        raise OptionError(
            "column 'headers' holds a header without a key, which Kafka refuses. Correct the column"
        )
    return headers
