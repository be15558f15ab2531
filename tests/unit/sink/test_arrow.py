"""Arrow record batches become Kafka records, with nothing lost on the way."""

from datetime import UTC, datetime

import pyarrow as pa
import pytest

from spark_eos.errors import OptionError
from spark_eos.sink.arrow import to_rows

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def batch(**columns):
    return pa.RecordBatch.from_pydict(columns)


def rows_of(record_batch, topic="t", include_headers=True):
    return list(to_rows(record_batch, topic, include_headers=include_headers))


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.binary(), pa.large_binary()])
def test_text_and_binary_become_bytes_and_null_stays_null(kind):
    raw = ["a", None, "", "ü"] if "str" in str(kind) else [b"a", None, b"", "ü".encode()]
    (rows,) = rows_of(batch(key=pa.array(raw, kind), value=pa.array(raw, kind)))
    assert list(rows.keys) == list(rows.values) == [b"a", None, b"", "ü".encode()]


def test_missing_columns_are_left_to_kafka():
    (rows,) = rows_of(batch(value=["a", "b"]))
    assert list(rows.keys) == [None, None]
    assert (rows.partitions, rows.timestamps_ms, rows.headers) == (None, None, None)
    assert rows.messages() == [{"key": None, "value": b"a"}, {"key": None, "value": b"b"}]


def test_all_columns_of_a_row_reach_its_message():
    (rows,) = rows_of(
        batch(
            value=["a", "b"],
            partition=pa.array([3, None], pa.int32()),
            timestamp=pa.array(
                [datetime(2026, 1, 1, 0, 0, 0, 1999, tzinfo=UTC), None], pa.timestamp("us", "UTC")
            ),
            headers=pa.array(
                [[{"key": "h", "value": b"1"}, {"key": "h", "value": None}], None], HEADERS
            ),
        )
    )
    assert rows.message(0) == {
        "key": None,
        "value": b"a",
        "partition": 3,
        "timestamp": 1767225600001,
        "headers": [("h", b"1"), ("h", None)],
    }
    assert rows.message(1) == {"key": None, "value": b"b"}


def test_headers_can_be_left_out():
    (rows,) = rows_of(
        batch(value=["a"], headers=pa.array([[{"key": "h", "value": b"1"}]], HEADERS)),
        include_headers=False,
    )
    assert rows.headers is None


def test_topic_option_wins_over_the_column():
    (rows,) = rows_of(batch(value=["a", "b"], topic=["x", None]), topic="t")
    assert (rows.topic, len(rows)) == ("t", 2)


def test_rows_are_split_by_the_topic_column_and_keep_their_order():
    found = rows_of(batch(value=["1", "2", "3", "4"], topic=["x", "y", "x", "y"]), topic=None)
    assert {r.topic: list(r.values) for r in found} == {"x": [b"1", b"3"], "y": [b"2", b"4"]}


def test_column_names_do_not_know_case():
    (rows,) = rows_of(batch(Value=["a"], KEY=["k"]))
    assert (list(rows.keys), list(rows.values)) == ([b"k"], [b"a"])


@pytest.mark.parametrize(
    ("columns", "text"),
    [
        ({"value": ["a"], "topic": pa.array([None], pa.string())}, "'topic' is null in 1 rows"),
        (
            {
                "value": ["a"],
                "topic": ["t"],
                "timestamp": pa.array(
                    [datetime(1969, 1, 1, tzinfo=UTC)], pa.timestamp("us", "UTC")
                ),
            },
            "before 1970",
        ),
        (
            {
                "value": ["a"],
                "topic": ["t"],
                "headers": pa.array([[{"key": None, "value": b"1"}]], HEADERS),
            },
            "header without a key",
        ),
    ],
)
def test_row_that_kafka_cannot_take_is_refused(columns, text):
    with pytest.raises(OptionError, match=text):
        rows_of(batch(**columns), topic=None)
