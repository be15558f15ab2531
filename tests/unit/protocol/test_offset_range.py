"""Ranges are cut without a gap, without an overlap, and always in the same way."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_eos._protocol.offsets.divide import divide
from spark_eos._protocol.offsets.topic_partition import OffsetRange


def whole(start, end, topic="t", partition=0):
    return OffsetRange(topic, partition, start, end)


def edges(parts):
    return [(part.partition, part.start, part.end) for part in parts]


def test_range():
    found = whole(3, 8)
    assert (found.size, found.topic_partition, str(found)) == (5, ("t", 0), "t-0 [3, 8)")
    assert whole(8, 3).size == 0


def test_nothing_is_cut_where_nobody_asks():
    ranges = [whole(0, 10**9), whole(5, 5, partition=1)]
    assert divide(ranges, None, None) == ranges
    assert divide([], 5, 5) == []


@pytest.mark.parametrize(
    ("size", "least", "most", "expected"),
    [
        (10, None, 4, [(0, 0, 3), (0, 3, 6), (0, 6, 10)]),
        (10, None, 10, [(0, 0, 10)]),
        (10, None, 5, [(0, 0, 5), (0, 5, 10)]),
        (10, 2, None, [(0, 0, 5), (0, 5, 10)]),
        (3, 10, None, [(0, 0, 1), (0, 1, 2), (0, 2, 3)]),
        (10, 2, 4, [(0, 0, 3), (0, 3, 6), (0, 6, 10)]),
        (4, 4, 3, [(0, 0, 1), (0, 1, 2), (0, 2, 3), (0, 3, 4)]),
        (0, 4, 3, [(0, 0, 0)]),
    ],
)
def test_one_range(size, least, most, expected):
    assert edges(divide([whole(0, size)], least, most)) == expected


def test_large_ranges_share_what_small_ones_leave():
    ranges = [whole(0, 1, partition=0), whole(0, 100, partition=1), whole(0, 1, partition=2)]
    assert edges(divide(ranges, 6, None)) == [
        (0, 0, 1),
        (1, 0, 25),
        (1, 25, 50),
        (1, 50, 75),
        (1, 75, 100),
        (2, 0, 1),
    ]


def test_enough_ranges_are_left_as_they_are():
    ranges = [whole(0, 10**6, partition=0), whole(0, 1, partition=1)]
    assert divide(ranges, 2, None) == ranges


def test_empty_ranges_do_not_count_as_tasks():
    ranges = [whole(0, 0, partition=0), whole(0, 8, partition=1)]
    assert edges(divide(ranges, 2, None)) == [(0, 0, 0), (1, 0, 4), (1, 4, 8)]


def test_parts_come_by_topic_and_number():
    ranges = [whole(0, 1, "b", 0), whole(0, 1, "a", 10), whole(0, 1, "a", 9)]
    assert [r.topic_partition for r in divide(ranges, None, None)] == [
        ("a", 9),
        ("a", 10),
        ("b", 0),
    ]


STARTS = st.integers(0, 2**62)
SIZES = st.integers(0, 3) | st.integers(0, 200)
RANGES = st.lists(st.tuples(STARTS, SIZES), max_size=6).map(
    lambda given: [
        OffsetRange("ab"[i % 2], i // 2, first, first + size)
        for i, (first, size) in enumerate(given)
    ]
)
LEAST = st.none() | st.integers(1, 40)
MOST = st.none() | st.integers(1, 60)


@given(RANGES, LEAST, MOST)
def test_parts_cover_every_range_in_order(ranges, least, most):
    parts = divide(ranges, least, most)
    assert parts == sorted(parts)
    for r in ranges:
        own = [part for part in parts if part.topic_partition == r.topic_partition]
        assert [part.start for part in own] == [r.start, *(part.end for part in own[:-1])]
        assert own[-1].end == r.end
        assert r.size == 0 or all(part.size > 0 for part in own)
        assert r.size > 0 or own == [r]


@given(RANGES, LEAST, st.integers(1, 60))
def test_no_part_is_larger_than_asked(ranges, least, most):
    assert all(part.size <= most for part in divide(ranges, least, most))


@given(RANGES, LEAST, MOST)
def test_parts_of_a_range_are_of_about_one_size(ranges, least, most):
    for r in ranges:
        sizes = [
            p.size for p in divide(ranges, least, most) if p.topic_partition == r.topic_partition
        ]
        assert max(sizes) - min(sizes) <= 1


@given(RANGES, st.integers(1, 40), MOST)
def test_there_are_about_as_many_parts_as_asked(ranges, least, most):
    """Shares are rounded: each range may be half a part off."""
    full = [r for r in ranges if r.size]
    parts = [part for part in divide(ranges, least, most) if part.size]
    wanted = min(least, sum(r.size for r in full))
    assert len(parts) >= wanted - len(full) / 2
    if most is None:
        assert len(parts) <= max(len(full), wanted + len(full) / 2)


@given(RANGES, LEAST, MOST, st.randoms(use_true_random=False))
def test_order_of_the_ranges_does_not_count(ranges, least, most, random):
    expected = divide(ranges, least, most)
    random.shuffle(ranges)
    assert divide(iter(ranges), least, most) == expected
