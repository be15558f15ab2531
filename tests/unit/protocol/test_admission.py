"""How far a micro-batch goes: fair, within the limit, never backwards, never standing still."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_eos._protocol.offsets.admission import available, rate_limited

A0, A1, B0 = ("a", 0), ("a", 1), ("b", 0)


@pytest.mark.parametrize(
    ("start", "latest", "expected"),
    [
        ({}, {}, 0),
        ({A0: 5}, {A0: 5}, 0),
        ({A0: 5, A1: 0}, {A0: 7, A1: 3}, 5),
        ({A0: 5}, {A0: 7, A1: 3}, 2),
        ({A0: 5, A1: 0}, {A0: 7}, 2),
        ({A0: 5, A1: 0}, {A0: 2, A1: 3}, 3),
    ],
)
def test_available(start, latest, expected):
    assert available(start, latest) == expected


@pytest.mark.parametrize("limit", [30, 31, 2**63 - 1])
@pytest.mark.parametrize("latest", [{A0: 30}, {A0: 10, A1: 20}])
def test_limit_that_is_enough_gives_everything(limit, latest):
    assert rate_limited(limit, dict.fromkeys(latest, 0), latest) == latest


def test_limit_is_split_in_proportion():
    start, latest = {A0: 100, A1: 0, B0: 7}, {A0: 130, A1: 60, B0: 17}
    assert rate_limited(50, start, latest) == {A0: 115, A1: 30, B0: 12}


def test_small_partition_is_not_starved():
    start, latest = {A0: 0, A1: 0, B0: 0}, {A0: 1_000_000, A1: 1, B0: 0}
    assert rate_limited(10, start, latest) == {A0: 9, A1: 1, B0: 0}


def test_numbers_beyond_a_float_stay_inside():
    far = 2**62
    (end,) = rate_limited(2**61 + 1, {A0: far}, {A0: far + 2**61 + 3}).values()
    assert far < end <= far + 2**61 + 3


def test_parts_are_those_of_sparks_own_arithmetic():
    """22 * (30 / 44) is 14.9..., in whole numbers it would be 15."""
    assert rate_limited(22, {A0: 0, A1: 0}, {A0: 30, A1: 14}) == {A0: 14, A1: 7}


def test_partition_without_a_start_is_passed_on():
    assert rate_limited(1, {A0: 0}, {A0: 9, A1: 9}) == {A0: 1, A1: 9}


def test_partition_that_went_backwards_is_passed_on():
    assert rate_limited(1, {A0: 0, A1: 9}, {A0: 9, A1: 4}) == {A0: 1, A1: 4}


def test_what_is_given_is_not_changed():
    start, latest = {A0: 0}, {A0: 9}
    rate_limited(100, start, latest)[A0] = 5
    rate_limited(1, start, latest)[A0] = 5
    assert (start, latest) == ({A0: 0}, {A0: 9})


SIZES = st.integers(0, 5) | st.integers(0, 2**40)
PARTITIONS = st.lists(st.tuples(st.integers(0, 2**40), SIZES), max_size=8)


@given(st.integers(1, 30) | st.integers(1, 2**42), PARTITIONS)
def test_batch_stays_within_its_bounds(limit, partitions):
    start = {("t", i): first for i, (first, _) in enumerate(partitions)}
    latest = {("t", i): first + size for i, (first, size) in enumerate(partitions)}
    end = rate_limited(limit, start, latest)
    assert end.keys() == latest.keys()
    assert all(start[p] <= end[p] <= latest[p] for p in end)
    assert all(end[p] > start[p] for p in end if latest[p] > start[p])
    assert available(start, end) <= limit + len(partitions)
    wanted = min(limit, available(start, latest))
    assert available(start, end) >= wanted - len(partitions)


@given(st.integers(1, 10), st.lists(st.integers(0, 40), min_size=1, max_size=4))
def test_batch_after_batch_everything_is_read(limit, sizes):
    latest = {("t", i): size for i, size in enumerate(sizes)}
    reached = dict.fromkeys(latest, 0)
    for _ in range(sum(sizes)):
        reached = rate_limited(limit, reached, latest)
    assert reached == latest
