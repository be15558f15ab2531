"""Filters leave out what they are certain of, and never a row that satisfies them all."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringStartsWith,
)

from spark_eos._protocol.offsets.topic_partition import OffsetRange
from spark_eos._source.filters import Pushed

OFFSET, PARTITION, TIMESTAMP, TOPIC = ("offset",), ("partition",), ("timestamp",), ("topic",)
WHOLE = OffsetRange("t", 0, 10, 20)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
NOON_MS = 1_767_268_800_000


def pushed(*filters):
    result = Pushed()
    result.push(filters)
    return result


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ([], (10, 20)),
        ([EqualTo(OFFSET, 12)], (12, 13)),
        ([EqualNullSafe(OFFSET, 12)], (12, 13)),
        ([GreaterThan(OFFSET, 12)], (13, 20)),
        ([GreaterThanOrEqual(OFFSET, 12)], (12, 20)),
        ([LessThan(OFFSET, 12)], (10, 12)),
        ([LessThanOrEqual(OFFSET, 12)], (10, 13)),
        ([In(OFFSET, (17, 12, 14))], (12, 18)),
        ([In(OFFSET, (0, 12, 99))], (10, 20)),
        ([GreaterThan(OFFSET, 11), LessThan(OFFSET, 15), GreaterThan(OFFSET, 9)], (12, 15)),
        ([GreaterThan(OFFSET, -5), LessThan(OFFSET, 2**63 - 1)], (10, 20)),
    ],
)
def test_offset_is_narrowed(filters, expected):
    found = pushed(*filters).narrow(WHOLE, None)
    assert (found.topic, found.partition, found.start, found.end) == ("t", 0, *expected)


@pytest.mark.parametrize(
    "filters",
    [
        [EqualTo(OFFSET, 9)],
        [EqualTo(OFFSET, 20)],
        [GreaterThan(OFFSET, 19)],
        [LessThan(OFFSET, 10)],
        [LessThan(OFFSET, -3)],
        [EqualTo(OFFSET, 12), EqualTo(OFFSET, 13)],
        [In(OFFSET, (12, 16)), EqualTo(OFFSET, 14)],
        [In(OFFSET, ())],
        [GreaterThan(OFFSET, 14), LessThan(OFFSET, 14)],
    ],
)
def test_filters_that_no_offset_satisfies_leave_nothing(filters):
    assert pushed(*filters).narrow(WHOLE, None).size == 0


@pytest.mark.parametrize(
    ("from_time", "expected"), [(None, 12), (0, 12), (11, 12), (15, 15), (20, 20), (99, 20)]
)
def test_offset_of_a_time_is_a_lower_bound_beside_the_others(from_time, expected):
    found = pushed(GreaterThanOrEqual(OFFSET, 12)).narrow(WHOLE, from_time)
    assert (found.start, found.end) == (expected, 20)


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ([], {("a", 0), ("a", 1), ("b", 0), ("b", 1)}),
        ([EqualTo(TOPIC, "a")], {("a", 0), ("a", 1)}),
        ([EqualNullSafe(TOPIC, "b")], {("b", 0), ("b", 1)}),
        ([In(TOPIC, ("a", "c", None))], {("a", 0), ("a", 1)}),
        ([EqualTo(TOPIC, "a"), In(TOPIC, ("b", "c"))], set()),
        ([In(TOPIC, ())], set()),
        ([EqualTo(PARTITION, 1)], {("a", 1), ("b", 1)}),
        ([GreaterThan(PARTITION, 0)], {("a", 1), ("b", 1)}),
        ([LessThanOrEqual(PARTITION, 0), EqualTo(TOPIC, "b")], {("b", 0)}),
        ([In(PARTITION, (0, 5))], {("a", 0), ("b", 0)}),
        ([In(PARTITION, (0, 5)), EqualTo(PARTITION, 1)], set()),
    ],
)
def test_partitions_that_cannot_hold_a_wanted_row_are_left_out(filters, expected):
    found = pushed(*filters)
    places = [(topic, partition) for topic in "ab" for partition in (0, 1)]
    assert {place for place in places if found.wants(place)} == expected


@pytest.mark.parametrize(
    "condition",
    [
        Not(EqualTo(OFFSET, 12)),
        Not(EqualTo(TOPIC, "t")),
        IsNull(OFFSET),
        IsNotNull(OFFSET),
        IsNotNull(TIMESTAMP),
        StringStartsWith(TOPIC, "x"),
        GreaterThan(TOPIC, "x"),
        EqualTo(OFFSET, None),
        EqualNullSafe(OFFSET, None),
        EqualTo(OFFSET, True),
        EqualTo(OFFSET, 12.5),
        EqualTo(OFFSET, "12"),
        In(OFFSET, (12, None)),
        EqualTo(PARTITION, None),
        EqualTo(("value",), b"x"),
        EqualTo(("offset", "nested"), 12),
        EqualTo(("headers", "offset"), 12),
        EqualTo(TIMESTAMP, None),
        EqualTo(TIMESTAMP, NOON_MS),
        GreaterThan(TIMESTAMP, datetime(2026, 1, 1)),  # noqa: DTZ001
        In(TIMESTAMP, ()),
    ],
)
def test_filter_that_is_not_understood_leaves_everything(condition):
    found = pushed(condition)
    assert found == Pushed()
    assert found.wants(WHOLE.topic_partition)
    assert found.narrow(WHOLE, None) == WHOLE


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ([GreaterThanOrEqual(TIMESTAMP, NOON)], NOON_MS),
        ([GreaterThan(TIMESTAMP, NOON)], NOON_MS),
        ([EqualTo(TIMESTAMP, NOON)], NOON_MS),
        ([In(TIMESTAMP, (NOON, NOON - timedelta(seconds=1)))], NOON_MS - 1000),
        ([GreaterThan(TIMESTAMP, NOON + timedelta(microseconds=999))], NOON_MS),
        ([GreaterThan(TIMESTAMP, NOON.astimezone(timezone(timedelta(hours=5))))], NOON_MS),
        ([GreaterThan(TIMESTAMP, EPOCH - timedelta(microseconds=1))], -1),
        ([LessThan(TIMESTAMP, NOON)], None),
        ([LessThanOrEqual(TIMESTAMP, NOON)], None),
        ([GreaterThan(TIMESTAMP, EPOCH), GreaterThan(TIMESTAMP, NOON)], NOON_MS),
    ],
)
def test_time_is_a_lower_bound(filters, expected):
    assert pushed(*filters).timestamp_ms.low == expected


def test_later_filters_narrow_what_earlier_ones_left():
    found = pushed(GreaterThan(OFFSET, 12))
    found.push([LessThan(OFFSET, 15)])
    assert str(found.narrow(WHOLE, None)) == "t-0 [13, 15)"


SATISFIES = {
    EqualTo: lambda row, value: row == value,
    EqualNullSafe: lambda row, value: row == value,
    GreaterThan: lambda row, value: row > value,
    GreaterThanOrEqual: lambda row, value: row >= value,
    LessThan: lambda row, value: row < value,
    LessThanOrEqual: lambda row, value: row <= value,
    In: lambda row, value: row in value,
}
COMPARISONS = [GreaterThan, GreaterThanOrEqual, LessThan, LessThanOrEqual]


def conditions(attribute, values, kinds=(*COMPARISONS, EqualTo, EqualNullSafe)):
    one = st.builds(lambda kind, value: kind(attribute, value), st.sampled_from(kinds), values)
    if EqualTo in kinds:
        one |= st.builds(lambda some: In(attribute, tuple(some)), st.lists(values, max_size=4))
    return st.lists(one, max_size=4)


def satisfied(filters, row):
    return all(SATISFIES[type(f)](row, f.value) for f in filters)


NUMBERS = st.integers(-3, 15)
BOUNDS = st.tuples(st.integers(0, 12), st.integers(0, 12)).map(sorted)


@given(conditions(OFFSET, NUMBERS), BOUNDS, st.none() | st.integers(0, 14))
def test_no_offset_that_satisfies_all_filters_is_left_out(filters, bounds, from_time):
    first, last = bounds
    found = pushed(*filters).narrow(OffsetRange("t", 0, first, last), from_time)
    wanted = {o for o in range(first, last) if o >= (from_time or 0) and satisfied(filters, o)}
    read = set(range(found.start, found.end))
    assert wanted <= read <= set(range(first, last))


@given(conditions(OFFSET, NUMBERS, COMPARISONS), BOUNDS)
def test_comparisons_leave_just_what_satisfies_them(filters, bounds):
    first, last = bounds
    found = pushed(*filters).narrow(OffsetRange("t", 0, first, last), None)
    wanted = [o for o in range(first, last) if satisfied(filters, o)]
    assert list(range(found.start, found.end)) == wanted


@given(conditions(PARTITION, NUMBERS))
def test_partitions_are_just_those_that_satisfy_all_filters(filters):
    found = pushed(*filters)
    for partition in range(14):
        assert found.wants(("t", partition)) is satisfied(filters, partition)


INSTANTS = st.integers(-3000, 3000).map(lambda us: NOON + timedelta(microseconds=us))


@given(conditions(TIMESTAMP, INSTANTS))
def test_no_record_that_satisfies_all_filters_is_older_than_the_bound(filters):
    low = pushed(*filters).timestamp_ms.low
    for ms in range(NOON_MS - 5, NOON_MS + 5):
        if satisfied(filters, EPOCH + timedelta(milliseconds=ms)):
            assert low is None or low <= ms
