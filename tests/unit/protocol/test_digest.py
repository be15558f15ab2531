"""Digests of partitions add up to one digest of all rows."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_eos._protocol.transactions.digest import RowsDigest, parse_digest, total_digest
from spark_eos.errors import CorruptLogError, LogVersionError

hashes = st.lists(st.integers(0, 2**64 - 1), max_size=12)


def digest(rows):
    return sum((RowsDigest(1, row) for row in rows), RowsDigest())


@given(hashes)
def test_stored_digest_is_read_as_what_it_was(rows):
    assert parse_digest(str(digest(rows))) == digest(rows)


@given(hashes, st.lists(st.integers(0, 4), min_size=12, max_size=12))
def test_rows_have_one_total_in_every_split_over_partitions(rows, places):
    partitions = [[], [], [], [], []]
    for row, place in zip(rows, places, strict=False):
        partitions[place].append(row)
    assert total_digest(str(digest(part)) for part in partitions) == digest(rows)


def test_sum_of_hashes_stays_within_its_sixteen_digits():
    total = total_digest(["1:1:ffffffffffffffff", "1:2:0000000000000003"])
    assert str(total) == "1:3:0000000000000002"


def test_total_of_no_partitions_is_no_rows():
    assert total_digest([]) == RowsDigest(0, 0)


@pytest.mark.parametrize("text", ["2:1:0000000000000003", "0:1:0000000000000003", "12:anything"])
def test_digest_of_another_version_is_refused(text):
    with pytest.raises(LogVersionError, match=r"version \d+, but this release compares version 1"):
        parse_digest(text)


@pytest.mark.parametrize("text", ["", "1", "1:2", "1:2:3", "1:-2:0000000000000003", "d0", "1:2:zz"])
def test_text_that_is_no_digest_is_refused(text):
    with pytest.raises(CorruptLogError, match="is not the digest of rows"):
        parse_digest(text)
