"""What must hold before a batch is decided, and the rows of the decision."""

from dataclasses import replace

import pytest

from spark_eos._protocol.transactions.decision import (
    abort_rows,
    check_prepared,
    completion_rows,
    decision_rows,
    is_as_left,
    is_stale,
    spare_ms,
)
from spark_eos._protocol.transactions.state import TransactionState
from spark_eos.errors import CorruptLogError, TransactionLostError
from tests.unit.protocol.builders import at, description, logged, record, result, running

S = TransactionState
BATCH = running(result(0), result(1, transaction=False, rows=0))
ID_NOW = result(0).transaction.identity
ID = ID_NOW.transactional_id


def check(found, *, now_ms=1_000, age_ms=1_000):
    check_prepared(BATCH, {ID: found}, now_ms=now_ms, age_at_most_ms=age_ms)


def test_transaction_as_its_task_left_it_may_be_decided():
    check(description())


@pytest.mark.parametrize("state", [s for s in S if s is not S.ONGOING])
def test_transaction_in_any_other_state_is_lost(state):
    with pytest.raises(TransactionLostError, match=state.wire_name):
        check(description(state=state))


def test_transaction_of_another_epoch_is_lost():
    with pytest.raises(TransactionLostError, match="now at epoch 2"):
        check(description(epoch=2))


def test_batch_write_that_is_lost_is_not_said_to_run_again_by_itself():
    for batch, text in (
        (BATCH, "start the query"),
        (replace(BATCH, is_batch_write=True), "run the write"),
    ):
        with pytest.raises(TransactionLostError, match=f"Nothing was decided, so {text} again"):
            check_prepared(batch, {ID: None}, now_ms=1_000, age_at_most_ms=1_000)


def test_transaction_that_the_coordinator_forgot_is_lost():
    with pytest.raises(TransactionLostError, match="not there"):
        check(None)


@pytest.mark.parametrize("state", S)
def test_lower_epoch_is_an_answer_from_the_past(state):
    assert is_stale(BATCH, {ID: description(epoch=0, state=state)})


@pytest.mark.parametrize("state", S)
def test_its_own_epoch_is_from_the_past_only_where_nothing_is_open(state):
    found = is_stale(BATCH, {ID: description(state=state)})
    assert found is (state is S.EMPTY)


@pytest.mark.parametrize("state", S)
def test_higher_epoch_another_producer_id_or_none_is_no_answer_from_the_past(state):
    later = description(epoch=2, state=state)
    other = replace(ID_NOW, producer_id=ID_NOW.producer_id - 1, producer_epoch=0)
    for found in (later, replace(later, identity=other), None):
        assert not is_stale(BATCH, {ID: found})


def test_transaction_close_to_its_time_out_is_not_decided():
    check(description(), now_ms=53_000, age_ms=53_000)
    with pytest.raises(TransactionLostError, match="too close"):
        check(description(), now_ms=55_000, age_ms=55_000)


def test_wrong_clock_does_not_stop_a_young_transaction():
    check(description(), now_ms=10**9, age_ms=2_000)  # the driver's clock is ahead
    check(description(start_ms=10**9), now_ms=0, age_ms=10**9)  # or behind


@pytest.mark.parametrize(("timeout", "spare"), [(5_000, 500), (60_000, 6_000), (900_000, 10_000)])
def test_spare_time_grows_with_the_time_out_up_to_a_limit(timeout, spare):
    assert spare_ms(timeout) == spare


def rows_of(batch, last):
    rows = decision_rows(batch, last, {ID: description(start_ms=1_000)}, at(5))
    assert all(row.entry_timestamp == at(5) for row in rows)
    return [(r.batch_id, r.sink_partition, r.state) for r in rows]


def test_first_decision_of_a_query():
    assert rows_of(BATCH, None) == [(8, 0, S.PREPARE_COMMIT)]


def test_decision_carries_the_completion_of_the_batch_before():
    last = logged(record(0), record(1), record(2, S.COMPLETE_COMMIT), record(3, S.EMPTY))
    assert rows_of(BATCH, last) == [
        (8, 0, S.PREPARE_COMMIT),
        (7, 0, S.COMPLETE_COMMIT),
        (7, 1, S.COMPLETE_COMMIT),
    ]


def test_decision_after_a_batch_that_was_lost_is_refused():
    with pytest.raises(CorruptLogError, match="do not belong together"):
        rows_of(BATCH, logged(record(0), record(1, S.COMPLETE_ABORT)))


def test_second_decision_of_a_batch_empties_ids_that_have_no_rows_now():
    last = logged(
        record(0, S.COMPLETE_ABORT), record(1, S.COMPLETE_ABORT), record(2, S.COMPLETE_COMMIT)
    )
    again = running(result(0, epoch=2), result(1, transaction=False), batch_id=7)
    assert rows_of(again, last) == [(7, 0, S.PREPARE_COMMIT), (7, 1, S.EMPTY)]


def test_emptied_id_names_no_records_of_the_attempt_that_was_aborted():
    last = logged(record(0, S.COMPLETE_ABORT), record(1, S.COMPLETE_ABORT))
    again = running(result(0, epoch=2), result(1, transaction=False), batch_id=7)
    _, emptied = decision_rows(again, last, {ID: description(start_ms=1_000)}, at(5))
    assert (emptied.state, emptied.partitions) == (S.EMPTY, ())


def test_decided_row_says_who_wrote_what_and_when():
    (row,) = decision_rows(BATCH, None, {ID: description(start_ms=1_000)}, at(5))
    assert row.run_id == "run-2"
    assert row.sink_partitions == 2
    assert (row.digest, row.input_digest) == ("digest-0", "input-8")
    assert row.start_timestamp is not None
    assert row.start_timestamp.timestamp() == 1


def test_abort_is_logged_as_an_intent_and_completes_the_batch_before():
    rows = abort_rows(BATCH, logged(record(3)), at(5))
    assert [(r.batch_id, r.sink_partition, r.state, r.entry_timestamp) for r in rows] == [
        (8, 0, S.PREPARE_ABORT, at(5)),
        (7, 3, S.COMPLETE_COMMIT, at(5)),
    ]


@pytest.mark.parametrize("state", [S.PREPARE_ABORT, S.COMPLETE_ABORT])
def test_batch_that_was_aborted_in_part_is_not_taken_for_complete(state):
    with pytest.raises(CorruptLogError, match="was aborted in partition 1, but Spark went past it"):
        completion_rows(logged(record(0), record(1, state)), at(5))


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (description(), True),
        (description(state=S.PREPARE_ABORT), False),
        (description(epoch=2), False),
        (None, False),
    ],
)
def test_transaction_is_as_its_task_left_it(found, expected):
    ((_, prepared),) = BATCH.transactions
    assert is_as_left(prepared.identity, found) is expected


def test_completion_leaves_ended_rows_alone():
    assert completion_rows(logged(record(0, S.COMPLETE_COMMIT), record(1, S.EMPTY)), at(5)) == ()
