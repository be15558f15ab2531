"""Where Kafka is, seen from the log: every move that can follow the log's own, written out."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_eos._protocol.transactions.ownership import (
    LAST_EPOCH,
    Position,
    ProducerEpoch,
    Token,
    before,
    is_next,
    may_decide,
    moves,
    new_mark,
    place_of,
    position,
    sign_of_restored_kafka,
    unknown_position,
)
from spark_eos._protocol.transactions.state import TransactionState
from spark_eos._protocol.transactions.transaction import ProducerIdentity, TransactionDescription
from tests.unit.protocol.builders import record

START, OTHER_START = 100, 200
DECISION, OTHER_DECISION = 101, 201


def found(epoch, mark, producer_id=7):
    return TransactionDescription(
        identity=ProducerIdentity(
            transactional_id="p-driver", producer_id=producer_id, producer_epoch=epoch
        ),
        state=TransactionState.EMPTY,
        timeout_ms=mark,
        start_time_ms=None,
    )


def token(epoch, mark):
    return Token(before=None if epoch is None else ProducerEpoch(7, epoch), mark=mark, place=1)


# The log's last move is a decision that started from epoch 5, by the driver with mark START.
AFTER_A_DECISION = [
    (found(5, START), Position.NOT_MOVED),
    (found(6, DECISION), Position.CURRENT),
    (found(6, START), Position.NOT_MOVED),  # its own start arrived once more, before the move
    (found(7, DECISION), Position.CURRENT),  # and the move behind it
    (found(7, START), Position.CURRENT),  # or the start behind the move
    (found(6, OTHER_START), Position.TAKEN_OVER),
    (found(7, OTHER_START), Position.TAKEN_OVER),
    (found(6, OTHER_DECISION), Position.AHEAD),
    (found(7, OTHER_DECISION), Position.AHEAD),
    (found(8, OTHER_START), Position.AHEAD),  # a decision may be hidden behind the start
    (found(8, DECISION), Position.AHEAD),
    (found(8, START), Position.AHEAD),
    (found(4, DECISION), Position.OUTDATED),
    (found(0, DECISION, producer_id=8), Position.CURRENT),  # the coordinator had forgotten the id
    (found(0, OTHER_START, producer_id=8), Position.AHEAD),
    (None, Position.FORGOTTEN),
]


@pytest.mark.parametrize(("now", "expected"), AFTER_A_DECISION)
def test_position_after_a_decision(now, expected):
    assert position(token(5, DECISION), START, now) is expected


# The log's last move is a start that was made from epoch 5.
AFTER_A_START = [
    (found(6, START), Position.CURRENT),
    (found(7, START), Position.CURRENT),  # it arrived twice
    (found(7, OTHER_START), Position.TAKEN_OVER),
    (found(7, DECISION), Position.AHEAD),
    (found(8, OTHER_START), Position.AHEAD),
]


@pytest.mark.parametrize(("now", "expected"), AFTER_A_START)
def test_position_after_a_start(now, expected):
    assert position(token(5, START), START, now) is expected


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        (None, Position.FORGOTTEN),
        (found(0, START), Position.TAKEN_OVER),
        (found(1, START), Position.TAKEN_OVER),  # the first move of an id is a start
        (found(1, DECISION), Position.AHEAD),
        (found(2, START), Position.AHEAD),
    ],
)
def test_position_of_a_log_that_does_not_know_the_query(now, expected):
    assert unknown_position(now) is expected


def test_epochs_that_are_used_up_are_counted_on():
    worn = ProducerEpoch(7, LAST_EPOCH)
    assert moves(worn, ProducerEpoch(8, 0)) == 1
    assert moves(worn, ProducerEpoch(8, 1)) == 2
    assert moves(ProducerEpoch(7, LAST_EPOCH - 1), ProducerEpoch(8, 0)) == 2
    assert position(token(LAST_EPOCH, DECISION), START, found(1, OTHER_START, 8)) is (
        Position.TAKEN_OVER
    )
    assert position(token(LAST_EPOCH - 5, DECISION), START, found(1, OTHER_START, 8)) is (
        Position.AHEAD
    )


COMMITTED = record()  # of a batch that is complete


def task(epoch=0, state=TransactionState.COMPLETE_COMMIT, producer_id=None):
    """What Kafka says of its id, so many epochs later."""
    identity = COMMITTED.identity
    return TransactionDescription(
        identity=ProducerIdentity(
            transactional_id=identity.transactional_id,
            producer_id=producer_id or identity.producer_id,
            producer_epoch=identity.producer_epoch + epoch,
        ),
        state=state,
        timeout_ms=1,
        start_time_ms=None,
    )


@pytest.mark.parametrize(
    ("now", "is_sign"),
    [
        (task(), False),
        (task(state=TransactionState.PREPARE_COMMIT), False),
        (task(state=TransactionState.ONGOING), True),
        (task(state=TransactionState.EMPTY), True),
        (task(-1), True),
        (task(1, TransactionState.ONGOING), False),  # of the batch behind it
        (task(-1, producer_id=99), False),  # the coordinator had forgotten the id since
        (None, False),
    ],
)
def test_commit_that_kafka_does_not_have_any_more_shows_that_it_was_restored(now, is_sign):
    name = COMMITTED.identity.transactional_id
    signs = [
        sign_of_restored_kafka([COMMITTED], {name: now}, found(6, START), where)
        for where in (Position.CURRENT, Position.TAKEN_OVER)
    ]
    assert signs == [now if is_sign else None] * 2


@pytest.mark.parametrize(
    ("now", "is_sign"), [(task(), False), (task(1), True), (None, True), (task(-1), True)]
)
def test_move_that_was_not_made_shows_it_unless_the_commit_is_there(now, is_sign):
    name = COMMITTED.identity.transactional_id
    sign = sign_of_restored_kafka([COMMITTED], {name: now}, found(6, START), Position.NOT_MOVED)
    assert (sign is not None) is is_sign


def test_nothing_is_known_of_a_batch_that_has_expired():
    assert sign_of_restored_kafka([], {}, found(6, START), Position.NOT_MOVED) is None


@given(st.integers(0, LAST_EPOCH))
def test_move_follows_what_was_before_it(epoch):
    now = ProducerEpoch(7, epoch)
    assert is_next(before(now), now)
    assert moves(before(now), now) == 1


@given(st.integers(1_000, 2**31 - 1), st.floats(0, 1, exclude_max=True), st.booleans())
def test_mark_is_a_time_out_that_the_broker_takes_and_tells_its_kind(limit, chance, decides):
    mark = new_mark(decides=decides, limit=limit, random=chance)
    assert 0 < mark <= limit
    assert may_decide(mark) is decides


def test_place_tells_clusters_and_ids_apart():
    places = {place_of(c, i) for c in ("a", "b") for i in ("x-driver", "y-driver")}
    assert len(places) == 4
    assert all(0 <= place < 2**63 for place in places)
