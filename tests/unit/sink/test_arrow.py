"""Arrow record batches become Kafka records, with nothing lost on the way."""

from datetime import UTC, datetime

import pyarrow as pa
import pytest

from spark_eos._sink.task.arrow import to_rows
from spark_eos.errors import OptionError

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


# The hour of 2024-10-27 that a clock in Berlin shows twice, the one of March that it leaves out.
_US = 1_000_000
_HOURS = [1_729_989_000 * _US, 1_729_992_600 * _US + 123_456, 1_711_846_800 * _US + 999_999]


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "GMT+2", "UTC+01:00", "Z", "+02:00", "?"])
def test_time_is_rounded_down_to_milliseconds_whatever_the_sessions_zone(zone):
    column = pa.array([*_HOURS, None], pa.timestamp("us", zone))
    (rows,) = rows_of(batch(value=["a"] * 4, timestamp=column))
    assert rows.timestamps_ms == [*(micros // 1000 for micros in _HOURS), None]


def test_record_that_had_no_time_is_written_with_the_current_one():
    """Kafka has -1 for none, and a frame that was read can be written as it is."""
    column = pa.array([-1000, 1000], pa.timestamp("us", "UTC"))
    (rows,) = rows_of(batch(value=["a", "b"], timestamp=column))
    assert rows.timestamps_ms == [None, 1]


@pytest.mark.parametrize("micros", [0, 999])
def test_first_millisecond_of_1970_is_refused(micros):
    """librdkafka takes it for no time at all, and would write the current one."""
    column = pa.array([1000, micros], pa.timestamp("us", "UTC"))
    with pytest.raises(OptionError, match=r"'timestamp'.*1970-01-01 00:00:00\.000.*null"):
        rows_of(batch(value=["a", "b"], timestamp=column))


@pytest.mark.parametrize("micros", [-1, -999, -1001, -(10**15)])
def test_time_before_1970_is_refused(micros):
    column = pa.array([micros], pa.timestamp("us", "Europe/Berlin"))
    with pytest.raises(OptionError, match=r"'timestamp'.*before 1970.*null"):
        rows_of(batch(value=["a"], timestamp=column))


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
        ({"value": ["a"], "topic": ["x" * 600]}, "'topic' holds 'x{60}': a topic's name has 1 to"),
        ({"value": ["a"], "topic": [""]}, "'topic' holds '': a topic's name has 1 to"),
        ({"value": ["a"], "topic": ["a b"]}, "'topic' holds 'a b': a topic's name has 1 to"),
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
