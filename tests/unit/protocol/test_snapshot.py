"""Whole micro-batches: no cut goes through one, whatever is open, held back or limited."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_eos._protocol.offsets.snapshot import BatchOutput, limited, outputs, whole_batches
from spark_eos._protocol.offsets.topic_partition import PartitionOffsets
from spark_eos._protocol.transactions.state import TransactionState
from tests.unit.protocol.builders import at, record

S = TransactionState
P0, P1, P2 = ("t", 0), ("t", 1), ("t", 2)


def batch(batch_id, *ranges, torn=False):
    """A batch that wrote `(partition, first, last)`."""
    return BatchOutput(
        batch_id=batch_id,
        partitions=tuple(
            PartitionOffsets(
                topic="t",
                partition=p,
                first_offset=first,
                last_offset=last,
                records=last - first + 1,
            )
            for p, first, last in ranges
        ),
        pending=(),
        aborted=torn,
    )


def test_everything_is_read_when_all_batches_are_whole():
    batches = [batch(0, (0, 0, 4), (1, 0, 2)), batch(1, (0, 6, 9))]
    latest = {P0: 11, P1: 4, P2: 7}
    assert whole_batches(batches, latest) == latest


def test_torn_batch_is_cut_off_where_it_begins_in_each_partition():
    batches = [batch(0, (0, 0, 4), (1, 0, 2)), batch(1, (0, 6, 9), (1, 4, 5), torn=True)]
    assert whole_batches(batches, {P0: 11, P1: 7, P2: 7}) == {P0: 6, P1: 4, P2: 7}


def test_batch_that_another_transaction_holds_back_is_cut_off_everywhere():
    """Partition 1 can be read up to 4 only: its records of batch 1 are behind."""
    batches = [batch(0, (0, 0, 4)), batch(1, (0, 6, 9), (1, 4, 5)), batch(2, (0, 11, 12))]
    assert whole_batches(batches, {P0: 14, P1: 4}) == {P0: 6, P1: 4}


def test_batch_of_several_tasks_in_one_partition_begins_with_the_first():
    batches = [batch(0, (0, 7, 9), (0, 3, 5), torn=True)]
    assert whole_batches(batches, {P0: 20}) == {P0: 3}


def test_limit_takes_whole_batches_and_at_least_one():
    batches = [batch(i, (0, 10 * i, 10 * i + 8), (1, 5 * i, 5 * i + 3)) for i in range(4)]
    end = {P0: 40, P1: 20}
    start = {P0: 0, P1: 0}
    assert limited(batches, start, end, None) == end
    assert limited(batches, start, end, 1000) == end
    assert limited(batches, start, end, 31) == {P0: 20, P1: 10}
    assert limited(batches, start, end, 1) == {P0: 10, P1: 5}
    assert limited(batches, {P0: 10, P1: 5}, end, 1) == {P0: 20, P1: 10}
    assert limited(batches, end, end, 1) == end


@given(
    sizes=st.lists(st.tuples(*[st.integers(0, 4)] * 3), min_size=1, max_size=8),
    torn=st.sets(st.integers(0, 7), max_size=2),
    held=st.tuples(*[st.integers(0, 40)] * 3),
    most=st.integers(1, 30),
)
def test_no_cut_goes_through_a_batch(sizes, torn, held, most):
    position, batches = [0, 0, 0], []
    for number, counts in enumerate(sizes):
        ranges = []
        for p, count in enumerate(counts):
            if count:
                ranges.append((p, position[p], position[p] + count - 1))
                position[p] += count + 1  # and a marker
        batches.append(batch(number, *ranges, torn=number in torn))
    latest = {("t", p): min(position[p], held[p]) for p in range(3)}
    whole = whole_batches(batches, latest)
    first_limited = limited(batches, {}, whole, most)
    for end in (whole, first_limited):
        seen = []
        for b in batches:
            inside = {p: end[p] >= e for p, e in b.end_offsets().items()}
            outside = {p: end[p] <= f for p, f in b.first_offsets().items()}
            assert all(inside.values()) or all(outside.values()), (b, end)
            seen.append(bool(b.partitions) and all(inside.values()))
            assert not (seen[-1] and b.aborted)
        written = [s for s, b in zip(seen, batches, strict=True) if b.partitions]
        assert written == sorted(written, reverse=True)  # none after one that is left out
    assert all(first_limited[p] <= whole[p] <= latest[p] for p in latest)


def test_batches_are_taken_from_the_newest_rows_of_the_log():
    rows = [
        record(0, S.PREPARE_COMMIT, batch_id=7),
        record(0, S.COMPLETE_COMMIT, batch_id=7, entry_timestamp=at(1)),
        record(1, S.PREPARE_COMMIT, batch_id=8),
        record(2, S.COMPLETE_ABORT, batch_id=9, entry_timestamp=at(1)),
    ]
    whole, decided, torn = outputs(rows)
    assert (whole.batch_id, whole.complete) == (7, True)
    assert (decided.batch_id, decided.complete, len(decided.pending)) == (8, False, 1)
    assert (torn.batch_id, torn.complete, torn.partitions) == (9, False, ())


def wrote(batch_id, sink_partition, state, seconds, first=0):
    """A row of a transaction that wrote five records, each sink partition to its own."""
    written = PartitionOffsets(
        topic="t", partition=sink_partition, first_offset=first, last_offset=first + 4, records=5
    )
    return record(
        sink_partition,
        state,
        batch_id=batch_id,
        epoch=batch_id,
        partitions=(written,),
        entry_timestamp=at(seconds),
    )


def test_output_in_a_topic_that_was_replaced_is_gone():
    kept = replace(wrote(7, 0, S.COMPLETE_COMMIT, 1), topic_ids=(("t", "first"),))
    assert outputs([kept], {"t": "first"})[0].replaced == ()
    assert outputs([kept], {"other": "x"})[0].replaced == ()
    (found,) = outputs([kept], {"t": "second"})
    assert (found.replaced, found.partitions, found.complete) == (("t",), (), True)
    pending = replace(wrote(7, 0, S.PREPARE_COMMIT, 1), topic_ids=(("t", "first"),))
    (found,) = outputs([pending], {"t": "second"})
    assert [record.partitions for record in found.pending] == [()]


def test_tombstones_are_no_batches_and_hold_nothing_back():
    """Each keeps the last row of an id: of batch 0 that would be two partitions of three. And the
    topic may have been created again since: it ends before what they name.
    """
    stones = [wrote(0, p, S.DEAD, 100) for p in (1, 2)] + [wrote(1, 0, S.DEAD, 100, first=6)]
    assert outputs(stones) == []
    latest = {P0: 3, P1: 3, P2: 3}
    assert whole_batches(outputs(stones), latest) == latest


def test_query_that_came_back_has_the_batches_since():
    """What is older than a tombstone expired with it, also a row that is still there."""
    left = [wrote(0, 0, S.COMPLETE_COMMIT, 1), wrote(1, 1, S.PREPARE_COMMIT, 1)]
    stones = [wrote(1, 0, S.DEAD, 100, first=6), wrote(0, 1, S.DEAD, 100)]
    since = [wrote(2, 0, S.PREPARE_COMMIT, 101, first=12)]
    (found,) = outputs([*left, *stones, *since])
    assert (found.batch_id, len(found.pending)) == (2, 1)
    assert whole_batches([found], {P0: 18, P1: 9}) == {P0: 12, P1: 9}


def aborted(batch_id, sink_partition, seconds, first=0):
    return [
        wrote(batch_id, sink_partition, S.PREPARE_ABORT, seconds, first),
        wrote(batch_id, sink_partition, S.COMPLETE_ABORT, seconds + 1, first),
    ]


@pytest.mark.parametrize("last", [S.PREPARE_COMMIT, S.COMPLETE_COMMIT, S.COMPLETE_ABORT])
def test_aborted_version_that_was_left_out_holds_nothing_back(last):
    rows = [
        wrote(0, 0, S.COMPLETE_COMMIT, 0),
        *aborted(1, 0, 2, first=6),
        wrote(1, 1, S.EMPTY, 3),  # of an attempt before
        wrote(2, 0, last, 5, first=12),
    ]
    batches = outputs(rows)
    assert [b.batch_id for b in batches] == [0, 2]
    end = 12 if last is S.PREPARE_COMMIT else 18
    assert whole_batches(batches, {P0: 18, P1: 7}) == {P0: end, P1: 7}


def test_aborted_batch_that_may_still_be_written_is_not_complete():
    (found,) = outputs(aborted(1, 0, 2))
    assert not found.complete


def test_batch_that_is_committed_in_part_is_torn_whatever_comes_behind():
    rows = [
        wrote(1, 0, S.COMPLETE_COMMIT, 1),
        *aborted(1, 1, 1),
        wrote(2, 0, S.COMPLETE_COMMIT, 3, first=6),
    ]
    batches = outputs(rows)
    assert [(b.batch_id, b.complete) for b in batches] == [(1, False), (2, True)]
    assert whole_batches(batches, {P0: 12, P1: 7}) == {P0: 0, P1: 7}


def test_intent_to_abort_is_no_output():
    (found,) = outputs([wrote(1, 0, S.PREPARE_ABORT, 2)])
    assert (found.complete, found.partitions) == (False, ())


def test_rows_of_an_attempt_that_was_aborted_are_not_counted_where_its_id_is_empty_now():
    """Older releases logged Empty with what the aborted attempt had written."""
    rows = [
        *aborted(3, 0, 1),
        wrote(3, 0, S.EMPTY, 5),
        wrote(3, 1, S.COMPLETE_COMMIT, 6),
    ]
    (found,) = outputs(rows)
    assert found.complete
    assert found.records() == {P1: 5}


def test_batch_that_came_back_without_rows_is_complete_and_wrote_nothing():
    (found,) = outputs([*aborted(3, 0, 1), wrote(3, 0, S.EMPTY, 5)])
    assert (found.complete, found.partitions) == (True, ())
