"""The digest knows rows, not their order and not how they were batched."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_eos._kafka.produce.rows import Rows
from spark_eos._protocol.transactions.digest import total_digest
from spark_eos._sink.task.digest import RowDigest

cells = st.none() | st.binary(max_size=8)
tables = st.lists(st.tuples(cells, cells), min_size=1, max_size=20)


def digest(rows, *, batches=1, topic="t", **columns):
    found = RowDigest()
    size = -(-len(rows) // batches)
    for start in range(0, len(rows), size):
        part = rows[start : start + size]
        found.update(
            Rows(topic=topic, keys=[k for k, _ in part], values=[v for _, v in part], **columns)
        )
    return found.hexdigest()


@given(tables, st.randoms())
def test_order_and_batches_do_not_count(rows, shuffler):
    shuffled = list(rows)
    shuffler.shuffle(shuffled)
    assert digest(rows) == digest(shuffled, batches=3)


@given(tables, st.lists(st.integers(0, 3), min_size=20, max_size=20))
def test_partitions_add_up_to_the_same_total_however_rows_are_split(rows, places):
    partitions = [RowDigest() for _ in range(4)]
    for (key, value), place in zip(rows, places, strict=False):
        partitions[place].update(Rows(topic="t", keys=[key], values=[value]))
    total = total_digest(partition.hexdigest() for partition in partitions)
    assert str(total) == digest(rows)


@given(tables, st.integers(0, 19), cells)
def test_a_changed_cell_counts(rows, row, cell):
    row %= len(rows)
    changed = [*rows[:row], (rows[row][0], cell), *rows[row + 1 :]]
    assert (digest(changed) == digest(rows)) == (changed == rows)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([(b"a", b"b")], [(b"b", b"a")]),  # swapped columns
        ([(b"a", b"b"), (b"c", b"d")], [(b"a", b"d"), (b"c", b"b")]),  # swapped cells
        ([(None, b"")], [(b"", None)]),
        ([(b"a", b"")], [(b"a", None)]),  # a tombstone is no empty value
        ([(b"a", b"b")], [(b"a", b"b"), (b"a", b"b")]),  # a doubled row
        ([(b"a", b"b")] * 2, [(b"c", b"d")] * 2),  # pairs do not cancel out
    ],
)
def test_rows_that_differ_have_another_digest(one, other):
    assert digest(one) != digest(other)


@pytest.mark.parametrize(
    "column",
    [
        {"topic": "u"},
        {"partitions": [1]},
        {"timestamps_ms": [1]},
        {"headers": [[("h", b"1")]]},
    ],
)
def test_every_column_counts(column):
    assert digest([(b"a", b"b")], **column) != digest([(b"a", b"b")])


def test_columns_that_begin_with_null_count():
    rows = [(b"a", b"b")] * 2
    assert digest(rows, partitions=[None, 3]) != digest(rows, partitions=[None, 4])


def test_digest_is_the_same_in_every_process_and_release():
    rows = [(b"k%d" % i, b"v%d" % i if i % 3 else None) for i in range(100)]
    random.Random(7).shuffle(rows)
    assert digest(rows) == "1:100:ba533794ff751110"


def test_no_rows_have_a_digest():
    assert RowDigest().hexdigest() == "1:0:0000000000000000"
