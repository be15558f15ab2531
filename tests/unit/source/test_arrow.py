"""Consumed records become columns, with nothing changed on the way."""

from datetime import UTC, datetime

import pyarrow as pa
import pytest
from confluent_kafka import TIMESTAMP_CREATE_TIME, TIMESTAMP_LOG_APPEND_TIME, Message
from pyspark.sql.pandas.types import to_arrow_schema

from spark_eos._protocol.offsets.topic_partition import OffsetRange
from spark_eos._source.arrow import record_batch
from spark_eos._source.schema import source_schema
from spark_eos.errors import SparkEosError

SOURCE = OffsetRange("t", 3, 5, 9)
NOON_MS = 1_767_268_800_000
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def schema(include_headers=False):
    return to_arrow_schema(source_schema(include_headers), timezone="UTC")


def message(offset, key=b"k", value=b"v", headers=None, timestamp=NOON_MS, kind=None):
    return Message(
        topic="t",
        partition=3,
        offset=offset,
        key=key,
        value=value,
        headers=headers,
        timestamp=(TIMESTAMP_CREATE_TIME if kind is None else kind, timestamp),
    )


def rows(*messages, include_headers=False):
    return record_batch(SOURCE, messages, schema(include_headers)).to_pylist()


def test_row_has_every_column_of_the_schema():
    batch = record_batch(SOURCE, [message(5)], schema())
    assert batch.schema == schema()
    assert batch.to_pylist() == [
        {
            "key": b"k",
            "value": b"v",
            "topic": "t",
            "partition": 3,
            "offset": 5,
            "timestamp": NOON,
            "timestampType": 0,
        }
    ]


def test_null_and_empty_are_not_the_same():
    found = rows(message(5, key=None, value=b""), message(6, key=b"", value=None))
    assert [(row["key"], row["value"]) for row in found] == [(None, b""), (b"", None)]


@pytest.mark.parametrize("offsets", [[5], [5, 6, 7], [5, 7], [5, 7, 8], [2**62, 2**62 + 2]])
def test_offsets_are_the_records_own(offsets):
    assert [row["offset"] for row in rows(*map(message, offsets))] == offsets


@pytest.mark.parametrize(
    ("timestamp", "kind", "expected"),
    [
        (NOON_MS + 1, TIMESTAMP_CREATE_TIME, (NOON.replace(microsecond=1000), 0)),
        (NOON_MS, TIMESTAMP_LOG_APPEND_TIME, (NOON, 1)),
        (0, TIMESTAMP_CREATE_TIME, (datetime(1970, 1, 1, tzinfo=UTC), 0)),
    ],
)
def test_timestamp_and_its_type(timestamp, kind, expected):
    (row,) = rows(message(5, timestamp=timestamp, kind=kind))
    assert (row["timestamp"], row["timestampType"]) == expected


@pytest.mark.parametrize(
    "timestamp", [NOON_MS * 10**6, -NOON_MS * 10**6, -(2**63), (2**63 - 1) // 1000 + 1]
)
def test_timestamp_that_is_no_milliseconds_is_refused_with_its_offset(timestamp):
    with pytest.raises(SparkEosError, match=f"t-3, offset 7: the timestamp {timestamp} is beyond"):
        rows(message(5), message(7, timestamp=timestamp), message(8, timestamp=timestamp))


def test_largest_timestamp_is_taken():
    largest = (2**63 - 1) // 1000
    batch = record_batch(SOURCE, [message(5, timestamp=largest)], schema())
    assert batch.column("timestamp").cast(pa.int64()).to_pylist() == [largest * 1000]


def test_headers_keep_order_and_doubles_and_are_null_where_there_are_none():
    twice = [("h", b"1"), ("h", None), ("ü", b"")]
    found = rows(message(5, headers=twice), message(6), include_headers=True)
    assert [row["headers"] for row in found] == [
        [{"key": key, "value": value} for key, value in twice],
        None,
    ]


def test_headers_are_left_out_unless_asked_for():
    assert "headers" not in rows(message(5, headers=[("h", b"1")]))[0]
