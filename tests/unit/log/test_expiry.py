"""Which rows may go: never a pending decision, never a query's last batch."""

from datetime import datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_eos._log.expiry import Cutoffs, judge
from spark_eos._log.tail import Tail
from spark_eos._protocol.offsets.snapshot import outputs
from spark_eos._protocol.transactions.state import TransactionState
from spark_eos._protocol.transactions.transaction import TransactionRecord
from tests.unit.log.builders import (
    COMPLETE_ABORT,
    COMPLETE_COMMIT,
    DEAD,
    PREPARE_COMMIT,
    QUERY,
    at,
    row,
)

DAY = 86_400
NOW = at(100 * DAY)
BUSY = Cutoffs(history=at(93 * DAY), idle=at(0))  # idle long ago: no query dies
IDLE = Cutoffs(history=at(93 * DAY), idle=at(93 * DAY))


def pair(batch_id: int, when: float, **more: int) -> list[TransactionRecord]:
    intent = row(batch_id, at(when), **more)  # type: ignore[arg-type]
    return [intent, intent.moved_to(COMPLETE_COMMIT, at(when + 1))]


def tail(batch_id: int, newest: datetime) -> dict[str, Tail]:
    return {QUERY: Tail(query_id=QUERY, at_version=9, batch_id=batch_id, newest=newest)}


def test_old_batch_that_ended_goes_and_the_last_one_stays() -> None:
    last = pair(2, 20)
    expiry = judge([*pair(1, 10), *last], tail(2, at(21)), BUSY, NOW)
    assert (expiry.kept, expiry.gone, expiry.dead) == (tuple(last), 2, ())


def test_pending_decision_stays_whatever_its_age() -> None:
    pending = row(1, at(10))
    expiry = judge([pending], tail(5, at(99 * DAY)), BUSY, NOW)
    assert expiry.kept == (pending,)


def test_end_stays_while_its_intent_is_in_a_younger_file() -> None:
    end = row(1, at(10), state=COMPLETE_COMMIT)
    expiry = judge([end], tail(5, at(99 * DAY)), BUSY, NOW)
    assert expiry.kept == (end,)


def test_rows_younger_than_the_history_stay() -> None:
    young = pair(1, 94 * DAY)
    expiry = judge(young, tail(5, at(99 * DAY)), BUSY, NOW)
    assert expiry.kept == tuple(young)


def test_partitions_of_a_batch_go_together() -> None:
    """Partition 1 was lost and written again, partly behind the limit: a part of a batch that is
    left would be taken for the whole.
    """
    first = pair(1, 10, partition=0)
    lost = row(1, at(10), partition=1)
    lost_rows = [lost, lost.moved_to(COMPLETE_ABORT, at(11))]
    again = pair(1, 94 * DAY, partition=1)
    for seen in ([*first, *lost_rows], [*first, *lost_rows, *again]):
        expiry = judge(seen, tail(5, at(99 * DAY)), BUSY, NOW)
        assert set(expiry.kept) == set(seen)
    later = Cutoffs(history=at(95 * DAY), idle=at(0))
    expiry = judge([*first, *lost_rows, *again], tail(5, at(99 * DAY)), later, NOW)
    assert expiry.kept == ()


def test_idle_query_leaves_one_dead_row_per_id() -> None:
    rows = [*pair(1, 10, partition=0), *pair(1, 10, partition=1), *pair(2, 20, partition=0)]
    expiry = judge(rows, tail(2, at(21)), IDLE, NOW)
    assert [(r.batch_id, r.sink_partition, r.state) for r in expiry.dead] == [
        (2, 0, DEAD),
        (1, 1, DEAD),
    ]
    assert (expiry.kept, expiry.gone) == ((), 6)
    (dead_tail,) = expiry.dead_tails
    assert (dead_tail.batch_id, dead_tail.since, dead_tail.newest) == (2, NOW, NOW)


def test_tombstones_are_read_as_no_batch() -> None:
    """Version 0 wrote in three partitions, version 1 in one: of version 0 two rows are left."""
    rows = [row for p in range(3) for row in pair(0, 10, partition=p)] + pair(1, 20)
    assert [len(b.partitions) for b in outputs(rows)] == [3, 1]
    expiry = judge(rows, tail(1, at(21)), IDLE, NOW)
    assert [(r.batch_id, r.sink_partition) for r in expiry.dead] == [(1, 0), (0, 1), (0, 2)]
    assert outputs([*expiry.kept, *expiry.dead]) == []


@pytest.mark.parametrize("intent", [PREPARE_COMMIT, TransactionState.PREPARE_ABORT])
def test_version_that_was_left_out_has_no_tombstone(intent: TransactionState) -> None:
    """It would be taken for written. The id's is of the last version that it did write."""
    failed = [row(1, at(20), partition=p, state=intent) for p in (1, 2)]
    failed += [r.moved_to(COMPLETE_ABORT, at(21)) for r in failed]
    rows = [*pair(0, 10, partition=1), *failed, *pair(2, 30)]
    expiry = judge(rows, tail(2, at(31)), IDLE, NOW)
    assert [(r.batch_id, r.sink_partition) for r in expiry.dead] == [(2, 0), (0, 1)]
    assert (expiry.kept, expiry.gone) == ((), 8)


def test_idle_query_with_a_pending_decision_does_not_die() -> None:
    rows = [*pair(1, 10), row(2, at(20))]
    expiry = judge(rows, tail(2, at(20)), IDLE, NOW)
    assert expiry.dead == ()
    assert expiry.kept == (row(2, at(20)),)


def test_idle_query_whose_last_batch_was_aborted_does_not_die() -> None:
    """It is still to be written when the query comes back: a tombstone could not tell."""
    lost = row(2, at(20), partition=1)
    last = [*pair(2, 20), lost, lost.moved_to(COMPLETE_ABORT, at(21))]
    expiry = judge([*pair(1, 10), *last], tail(2, at(21)), IDLE, NOW)
    assert (set(expiry.kept), expiry.dead) == (set(last), ())


def test_idle_query_whose_lost_partition_was_written_again_dies() -> None:
    lost = row(2, at(20), epoch=7)
    rows = [lost, lost.moved_to(COMPLETE_ABORT, at(21)), *pair(2, 22)]
    expiry = judge(rows, tail(2, at(23)), IDLE, NOW)
    assert [r.state for r in expiry.dead] == [DEAD]


def test_idle_query_whose_newest_row_is_in_a_younger_file_does_not_die() -> None:
    expiry = judge(pair(1, 10), tail(2, at(20)), IDLE, NOW)
    assert expiry.dead == ()


def test_tombstones_go_when_they_are_old_themselves() -> None:
    stone = row(2, at(50 * DAY), state=DEAD)
    expiry = judge([stone], tail(2, at(50 * DAY)), IDLE, NOW)
    assert (expiry.kept, expiry.dead, expiry.gone) == ((), (), 1)


def test_tombstones_stay_while_they_are_young() -> None:
    stone = row(2, at(95 * DAY), state=DEAD)
    expiry = judge([stone], tail(2, at(95 * DAY)), IDLE, NOW)
    assert expiry.kept == (stone,)


_STATES = st.sampled_from([PREPARE_COMMIT, COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT])


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 4), st.integers(0, 2), st.integers(1, 80), _STATES), min_size=1
    )
)
def test_no_pending_decision_is_ever_lost(
    made: list[tuple[int, int, int, TransactionState]],
) -> None:
    rows = [
        row(batch, at(day * DAY), partition=part, state=state) for batch, part, day, state in made
    ]
    newest = max(r.entry_timestamp for r in rows)
    expiry = judge(rows, tail(4, newest), IDLE, NOW)

    def pending(among: list[TransactionRecord]) -> set[tuple[int, str]]:
        found: dict[tuple[int, str], TransactionRecord] = {}
        for r in sorted(among, key=lambda r: (r.entry_timestamp, r.state.number)):
            found[r.batch_id, r.identity.transactional_id] = r
        return {key for key, r in found.items() if r.state.is_pending}

    assert pending(list(expiry.kept)) == pending(rows)
    assert not (pending(rows) and expiry.dead)
