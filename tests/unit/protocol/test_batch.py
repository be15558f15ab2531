"""The rows of a batch, reduced to the newest of each id, and what they say of it."""

import itertools

import pytest

from spark_eos._protocol.transactions.batch import latest_batch
from spark_eos._protocol.transactions.state import TransactionState
from spark_eos.errors import CorruptLogError
from tests.unit.protocol.builders import at, logged, record

S = TransactionState


def test_newest_row_of_each_id_wins_in_whatever_order_rows_come():
    rows = [
        record(0, S.PREPARE_COMMIT, entry_timestamp=at(1)),
        record(0, S.COMPLETE_ABORT, entry_timestamp=at(2)),
        record(0, S.PREPARE_COMMIT, entry_timestamp=at(3), epoch=2),
        record(1, S.PREPARE_COMMIT, entry_timestamp=at(1)),
    ]
    for order in itertools.permutations(rows):
        batch = latest_batch(order)
        assert batch is not None
        assert [(r.sink_partition, r.identity.producer_epoch) for r in batch.records] == [
            (0, 2),
            (1, 1),
        ]
        assert len(batch.pending) == 2


def test_no_rows_are_no_batch():
    assert latest_batch([]) is None


def test_rows_of_two_batches_are_an_error():
    with pytest.raises(CorruptLogError, match="several"):
        latest_batch([record(0), record(1, batch_id=8)])


@pytest.mark.parametrize(
    ("states", "is_aborted", "is_whole"),
    [
        ([S.COMPLETE_ABORT, S.COMPLETE_ABORT], True, False),
        ([S.COMPLETE_ABORT, S.EMPTY], True, False),
        ([S.PREPARE_ABORT], True, False),
        ([S.COMPLETE_ABORT, S.COMPLETE_COMMIT], False, False),
        ([S.COMPLETE_ABORT, S.PREPARE_COMMIT], False, False),
        ([S.COMPLETE_COMMIT, S.PREPARE_COMMIT, S.EMPTY], False, True),
        ([S.DEAD], False, True),
        ([S.EMPTY], False, True),
    ],
)
def test_batch_is_aborted_where_all_that_had_rows_was_and_whole_where_nothing_was(
    states, is_aborted, is_whole
):
    batch = logged(*(record(number, state) for number, state in enumerate(states)))
    assert (batch.is_aborted, batch.is_whole) == (is_aborted, is_whole)


def test_intent_to_abort_is_pending_and_not_decided():
    batch = logged(record(0, S.PREPARE_COMMIT), record(1, S.PREPARE_ABORT), record(2, S.EMPTY))
    assert [r.sink_partition for r in batch.pending] == [0, 1]
    assert [r.sink_partition for r in batch.decided] == [0]
