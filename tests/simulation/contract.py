"""What the broker in memory and the real one must have in common, told once for both.

A scenario is a function of a side. A side has the product's clients under the product's names:
`coordinator`, `producer`, `fates`, `offsets_fate`, and a plain reader: `visible`, `stable`. `wear`
brings an id to an epoch, `expire` waits until the coordinator has forgotten one.
"""

from dataclasses import replace

import pytest

from spark_eos._deadline import Deadline
from spark_eos._kafka.produce.rows import Rows
from spark_eos._protocol.transactions.fate import Fate
from spark_eos._protocol.transactions.outcome import ErrorCode
from spark_eos._protocol.transactions.ownership import ProducerEpoch, Token, is_next
from spark_eos._protocol.transactions.state import TransactionState as State
from spark_eos.errors import BrokerUnreachableError, DeliveryError
from tests.epochs import LAST_EPOCH

GROUP_OFFSET = 7


def soon(ms=20_000):
    return Deadline.after_ms(ms)


def rows(side, *values):
    encoded = [value.encode() for value in values]
    return Rows(
        topic=side.topic, keys=[None] * len(values), values=encoded, partitions=[0] * len(values)
    )


def write(side, name, *values):
    """A prepared transaction with these values in partition 0, and its producer."""
    producer = side.producer(name)
    producer.send(rows(side, *values))
    return producer.prepare(soon()), producer


def write_more(side, zombie):
    zombie.send(rows(side, "zombie"))
    zombie.prepare(soon())


def end(side, identity, *, committed):
    answers = side.coordinator.end([identity], committed=committed, deadline=soon())
    return answers[identity.transactional_id].code


def commit(side, prepared):
    return end(side, prepared.identity, committed=True)


def abort(side, prepared):
    return end(side, prepared.identity, committed=False)


def described(side, prepared):
    """(state, epochs since it was prepared, whether the producer id is the same)."""
    name, deadline = prepared.identity.transactional_id, soon()
    found = side.coordinator.describe([name], deadline)[name]
    while found.state.is_pending and not deadline.passed:  # its markers are on their way
        found = side.coordinator.describe([name], deadline)[name]
    return (
        found.state,
        found.identity.producer_epoch - prepared.identity.producer_epoch,
        found.identity.producer_id == prepared.identity.producer_id,
    )


def fate(side, prepared, ms=20_000):
    return side.fates([("x", prepared.partitions)], soon(ms))["x"]


def committed_from_outside(side):
    prepared, _ = write(side, "a", "1", "2")
    assert described(side, prepared) == (State.ONGOING, 0, True)
    assert (side.visible(), side.stable()) == ([], False)
    assert commit(side, prepared) == ErrorCode.NONE
    assert commit(side, prepared) == ErrorCode.NONE
    assert abort(side, prepared) == ErrorCode.INVALID_TXN_STATE
    assert described(side, prepared) == (State.COMPLETE_COMMIT, 0, True)
    assert (side.visible(), side.stable()) == (["1", "2"], True)
    assert fate(side, prepared) is Fate.COMMITTED


def aborted_from_outside(side):
    prepared, _ = write(side, "a", "1")
    assert abort(side, prepared) == ErrorCode.NONE
    assert abort(side, prepared) == ErrorCode.NONE
    assert commit(side, prepared) == ErrorCode.INVALID_TXN_STATE
    assert described(side, prepared) == (State.COMPLETE_ABORT, 0, True)
    assert (side.visible(), side.stable()) == ([], True)
    assert fate(side, prepared) is Fate.ABORTED


def aborted_by_its_producer(side):
    prepared, producer = write(side, "a", "1")
    producer.abort(soon())
    assert described(side, prepared) == (State.COMPLETE_ABORT, 0, True)
    assert commit(side, prepared) == ErrorCode.INVALID_TXN_STATE


def wrong_names_are_refused(side):
    prepared, _ = write(side, "a", "1")
    identity = prepared.identity
    for epoch in (identity.producer_epoch - 1, identity.producer_epoch + 1):
        other = replace(identity, producer_epoch=epoch)
        assert end(side, other, committed=True) == ErrorCode.PRODUCER_FENCED
    other = replace(identity, producer_id=identity.producer_id + 100_000)
    assert end(side, other, committed=True) == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    unknown = replace(identity, transactional_id=side.name("never used"))
    assert end(side, unknown, committed=True) == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert side.coordinator.describe([unknown.transactional_id], soon()) == {
        unknown.transactional_id: None
    }
    assert described(side, prepared) == (State.ONGOING, 0, True)
    assert abort(side, prepared) == ErrorCode.NONE


def new_producer_aborts_what_the_old_one_left(side):
    old, zombie = write(side, "a", "old")
    new, _ = write(side, "a", "new")
    assert new.identity.producer_epoch == old.identity.producer_epoch + 2
    assert fate(side, old) is Fate.ABORTED
    assert commit(side, old) == ErrorCode.PRODUCER_FENCED
    with pytest.raises(DeliveryError):
        write_more(side, zombie)
    assert commit(side, new) == ErrorCode.NONE
    assert (side.visible(), side.stable()) == (["new"], True)


def new_producer_after_an_end_bumps_the_epoch_once(side):
    first, _ = write(side, "a", "1")
    assert commit(side, first) == ErrorCode.NONE
    side.producer("a")
    assert described(side, first) == (State.EMPTY, 1, True)
    assert commit(side, first) == ErrorCode.PRODUCER_FENCED
    assert side.visible() == ["1"]
    second, _ = write(side, "a", "2")
    assert second.identity.producer_epoch == first.identity.producer_epoch + 2
    assert abort(side, second) == ErrorCode.NONE


def end_of_an_empty_transaction_is_refused(side):
    prepared, _ = write(side, "a", "1")
    side.producer("a")
    now = replace(prepared.identity, producer_epoch=prepared.identity.producer_epoch + 2)
    assert end(side, now, committed=True) == ErrorCode.INVALID_TXN_STATE
    assert end(side, now, committed=False) == ErrorCode.INVALID_TXN_STATE


def fenced_from_outside(side):
    prepared, zombie = write(side, "a", "1")
    name = prepared.identity.transactional_id
    for epochs in (2, 3):
        fenced = side.coordinator.fence([name], timeout_ms=60_000, deadline=soon())[name]
        assert fenced.producer_epoch == prepared.identity.producer_epoch + epochs
        assert described(side, prepared) == (State.EMPTY, epochs, True)
    assert commit(side, prepared) == ErrorCode.PRODUCER_FENCED
    with pytest.raises(DeliveryError):
        write_more(side, zombie)
    assert (side.visible(), side.stable()) == ([], True)


def timed_out(side):
    prepared = side.timed_out("a", rows(side, "1"))
    assert described(side, prepared) == (State.COMPLETE_ABORT, 1, True)
    assert commit(side, prepared) == ErrorCode.PRODUCER_FENCED
    assert abort(side, prepared) == ErrorCode.PRODUCER_FENCED
    assert fate(side, prepared) is Fate.ABORTED
    assert (side.visible(), side.stable()) == ([], True)
    again, _ = write(side, "a", "2")
    assert again.identity.producer_epoch == prepared.identity.producer_epoch + 2
    assert commit(side, again) == ErrorCode.NONE
    assert side.visible() == ["2"]


def older_open_transaction_holds_back_a_committed_one(side):
    older, _ = write(side, "a", "older")
    newer, _ = write(side, "b", "newer")
    assert commit(side, newer) == ErrorCode.NONE
    assert fate(side, newer, 5_000) is Fate.OPEN
    assert (side.visible(), side.stable()) == ([], False)
    assert abort(side, older) == ErrorCode.NONE
    assert fate(side, newer) is Fate.COMMITTED
    assert fate(side, older) is Fate.ABORTED
    assert (side.visible(), side.stable()) == (["newer"], True)


def transactions_lie_across_each_other(side):
    first, second = side.producer("a"), side.producer("b")
    for turn in range(3):
        first.send(rows(side, f"first {turn}"))
        first.flush(soon())
        second.send(rows(side, f"second {turn}"))
        second.flush(soon())
    kept, gone = first.prepare(soon()), second.prepare(soon())
    assert abort(side, gone) == ErrorCode.NONE
    assert commit(side, kept) == ErrorCode.NONE
    assert side.visible() == ["first 0", "first 1", "first 2"]
    assert (fate(side, kept), fate(side, gone)) == (Fate.COMMITTED, Fate.ABORTED)


def zombie_cannot_write_behind_an_end(side):
    """Same epoch: the transaction was ended from outside while its producer still wrote."""
    prepared, zombie = write(side, "a", "1")
    assert abort(side, prepared) == ErrorCode.NONE
    assert side.stable()  # until its marker is there, the partition takes more, and aborts it too
    with pytest.raises(DeliveryError):
        write_more(side, zombie)
    assert (side.visible(), side.stable()) == ([], True)


def offsets_move_when_the_transaction_commits(side):
    for committed, expected in ((False, Fate.ABORTED), (True, Fate.COMMITTED)):
        producer = side.producer("offsets")
        producer.send_offsets({(side.topic, 0): GROUP_OFFSET}, side.group_metadata(), soon())
        prepared = producer.prepare(soon())
        with pytest.raises(BrokerUnreachableError):
            side.offsets_fate(GROUP_OFFSET, soon(1_500))
        assert end(side, prepared.identity, committed=committed) == ErrorCode.NONE
        assert side.offsets_fate(GROUP_OFFSET, soon()) is expected
    assert side.offsets_fate(GROUP_OFFSET + 1, soon()) is Fate.ABORTED
    assert side.offsets_fate(GROUP_OFFSET - 1, soon()) is Fate.COMMITTED


def open_transactions_are_listed(side):
    ended, _ = write(side, "a", "1")
    left, _ = write(side, "b", "2")
    assert commit(side, ended) == ErrorCode.NONE
    side.producer("c")  # begun, and nothing written

    assert _listed(side, side.coordinator.list_open, State.ONGOING) == ["b"]
    assert abort(side, left) == ErrorCode.NONE
    assert _listed(side, side.coordinator.list_open, State.ONGOING) == []


def ids_whose_last_transaction_was_committed_are_listed(side):
    for name, ended in (("a", commit), ("b", abort), ("c", None)):
        prepared, _ = write(side, name, name)
        if ended is not None:
            assert ended(side, prepared) == ErrorCode.NONE
    both = (State.PREPARE_COMMIT, State.COMPLETE_COMMIT)
    assert _listed(side, side.coordinator.list_committed, *both) == ["a"]
    side.coordinator.fence([side.name("c")], timeout_ms=60_000, deadline=soon())
    side.producer("a")  # the next transaction of the id is another matter
    assert _listed(side, side.coordinator.list_committed, *both) == []


def last_epoch_is_committed_and_then_the_producer_id_changes(side):
    last, _ = _open_at(side, LAST_EPOCH)
    assert commit(side, last) == ErrorCode.NONE
    assert commit(side, last) == ErrorCode.NONE
    assert abort(side, last) == ErrorCode.INVALID_TXN_STATE
    assert described(side, last) == (State.COMPLETE_COMMIT, 0, True)
    first, _ = write(side, "a", "first")
    assert _is_of_the_next_producer_id(first, last, epoch=0)
    for old in (commit, abort):
        assert old(side, last) == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert described(side, first) == (State.ONGOING, 0, True)
    assert fate(side, last) is Fate.COMMITTED
    assert commit(side, first) == ErrorCode.NONE
    assert (side.visible(), side.stable()) == (["last", "first"], True)


def new_producer_aborts_what_the_last_epoch_left(side):
    """The abort takes the next producer id with its epoch 0, and the new producer the epoch 1."""
    last, zombie = _open_at(side, LAST_EPOCH)
    first, _ = write(side, "a", "first")
    assert _is_of_the_next_producer_id(first, last, epoch=1)
    assert commit(side, last) == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert fate(side, last) is Fate.ABORTED
    with pytest.raises(DeliveryError):
        write_more(side, zombie)
    assert commit(side, first) == ErrorCode.NONE
    assert (side.visible(), side.stable()) == (["first"], True)


def new_producer_aborts_what_the_last_epoch_but_one_left(side):
    last, _ = _open_at(side, LAST_EPOCH - 1)
    first, _ = write(side, "a", "first")
    assert _is_of_the_next_producer_id(first, last, epoch=0)
    assert commit(side, last) == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert fate(side, last) is Fate.ABORTED
    assert commit(side, first) == ErrorCode.NONE
    assert (side.visible(), side.stable()) == (["first"], True)


def last_epoch_times_out(side):
    side.wear("a", LAST_EPOCH - 1)
    last = side.timed_out("a", rows(side, "last"))
    assert last.identity.producer_epoch == LAST_EPOCH
    assert described(side, last) == (State.COMPLETE_ABORT, -LAST_EPOCH, False)
    assert commit(side, last) == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert abort(side, last) == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert fate(side, last) is Fate.ABORTED
    first, _ = write(side, "a", "first")
    assert _is_of_the_next_producer_id(first, last, epoch=1)
    assert commit(side, first) == ErrorCode.NONE
    assert (side.visible(), side.stable()) == (["first"], True)


def expired_id_was_never_there(side):
    old, zombie = write(side, "a", "1")
    assert commit(side, old) == ErrorCode.NONE
    side.expire("a")
    name = old.identity.transactional_id
    assert side.coordinator.describe([name], soon()) == {name: None}
    for again in (commit, abort):
        assert again(side, old) == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert fate(side, old) is Fate.COMMITTED
    with pytest.raises(DeliveryError):
        write_more(side, zombie)
    new, _ = write(side, "a", "2")
    assert _is_of_the_next_producer_id(new, old, epoch=0)
    assert commit(side, new) == ErrorCode.NONE
    assert (side.visible(), side.stable()) == (["1", "2"], True)


def _driver(side, short="driver"):
    """What the coordinator says of a query's own id: its epoch and its mark; None for nothing."""
    name = side.name(short)
    found = side.coordinator.describe([name], soon())[name]
    return None if found is None else (ProducerEpoch.of(found.identity), found.timeout_ms)


def _move(side, before, mark, short="driver"):
    token = Token(before=before, mark=mark, place=1)
    return side.coordinator.move_driver(side.name(short), token, soon())


def driver_starts_with_an_epoch_of_its_own(side):
    assert _driver(side) is None
    first = side.coordinator.start_driver(side.name("driver"), 2, soon())
    assert _driver(side) == (first, 2)
    assert first.epoch == 0
    second = side.coordinator.start_driver(side.name("driver"), 4, soon())
    assert second == ProducerEpoch(first.producer_id, 1)
    assert _driver(side) == (second, 4)


def decision_moves_the_epoch_once(side):
    start = side.coordinator.start_driver(side.name("driver"), 2, soon())
    moved = _move(side, start, 3)
    assert moved == ProducerEpoch(start.producer_id, 1)
    assert _move(side, start, 3) == moved
    assert _driver(side) == (moved, 3)
    after = _move(side, moved, 5)
    assert after == ProducerEpoch(start.producer_id, 2)
    assert _move(side, start, 3) is None
    assert _driver(side) == (after, 5)


def driver_that_started_earlier_cannot_move_the_epoch(side):
    old = side.coordinator.start_driver(side.name("driver"), 2, soon())
    new = side.coordinator.start_driver(side.name("driver"), 4, soon())
    assert _move(side, old, 3) is None
    assert _driver(side) == (new, 4)
    assert _move(side, new, 5) == ProducerEpoch(new.producer_id, 2)


def move_from_an_epoch_that_was_never_there_is_refused(side):
    start = side.coordinator.start_driver(side.name("driver"), 2, soon())
    for wrong in (
        ProducerEpoch(start.producer_id, 7),
        ProducerEpoch(start.producer_id + 100_000, 0),
    ):
        assert _move(side, wrong, 3) is None
    assert _driver(side) == (start, 2)


def forgotten_driver_is_moved_to_another_producer_id(side):
    """Whatever epoch is expected: the coordinator knows of none."""
    before = ProducerEpoch(12_345, 17)
    moved = _move(side, before, 3)
    assert moved.epoch == 0
    assert is_next(before, moved)
    assert _driver(side) == (moved, 3)


def worn_driver_is_moved_to_another_producer_id(side):
    side.wear("driver", LAST_EPOCH)
    worn, _ = _driver(side)
    assert worn.epoch == LAST_EPOCH
    moved = _move(side, worn, 3)
    assert moved.producer_id != worn.producer_id
    assert is_next(worn, moved)
    assert _move(side, worn, 3) == moved
    assert _driver(side) == (moved, 3)


def _listed(side, ask, *states):
    """Which of three ids of the side a list of the coordinators has in one of these states."""
    names = {one.transactional_id for one in ask(soon()) if one.state in states}
    return [short for short in ("a", "b", "c") if side.name(short) in names]


def _open_at(side, epoch):
    side.wear("a", epoch - 1)
    prepared, producer = write(side, "a", "last")
    assert prepared.identity.producer_epoch == epoch
    return prepared, producer


def _is_of_the_next_producer_id(new, old, *, epoch):
    return (
        new.identity.producer_id != old.identity.producer_id
        and new.identity.producer_epoch == epoch
    )


SCENARIOS = (
    committed_from_outside,
    aborted_from_outside,
    aborted_by_its_producer,
    wrong_names_are_refused,
    new_producer_aborts_what_the_old_one_left,
    new_producer_after_an_end_bumps_the_epoch_once,
    end_of_an_empty_transaction_is_refused,
    fenced_from_outside,
    timed_out,
    older_open_transaction_holds_back_a_committed_one,
    transactions_lie_across_each_other,
    zombie_cannot_write_behind_an_end,
    offsets_move_when_the_transaction_commits,
    open_transactions_are_listed,
    ids_whose_last_transaction_was_committed_are_listed,
    driver_starts_with_an_epoch_of_its_own,
    decision_moves_the_epoch_once,
    driver_that_started_earlier_cannot_move_the_epoch,
    move_from_an_epoch_that_was_never_there_is_refused,
    forgotten_driver_is_moved_to_another_producer_id,
)

# These need an id that has been through all its epochs: half a minute each on a real broker.
WORN_SCENARIOS = (
    last_epoch_is_committed_and_then_the_producer_id_changes,
    new_producer_aborts_what_the_last_epoch_left,
    new_producer_aborts_what_the_last_epoch_but_one_left,
    last_epoch_times_out,
    worn_driver_is_moved_to_another_producer_id,
)
