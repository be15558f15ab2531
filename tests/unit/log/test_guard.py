"""Rows that cannot follow what the log holds are refused before anything is written."""

from dataclasses import replace
from datetime import datetime

import pytest

from spark_eos._log.guard import check_append
from spark_eos._log.tail import Tail
from spark_eos._protocol.transactions.batch import latest_batch
from spark_eos._protocol.transactions.state import TransactionState
from spark_eos._protocol.transactions.transaction import TransactionRecord
from spark_eos.errors import CorruptLogError
from tests.unit.log.builders import COMPLETE_ABORT, COMPLETE_COMMIT, DEAD, OTHER, QUERY, at, row

EMPTY = Tail(query_id=QUERY, at_version=0, is_read=True)


def tail(*rows: TransactionRecord) -> Tail:
    """The end of a log that holds these rows."""
    batch = latest_batch(rows)
    newest: datetime = max(r.entry_timestamp for r in rows)
    return Tail(
        query_id=QUERY,
        at_version=1,
        batch_id=rows[0].batch_id,
        since=newest,
        newest=newest,
        batch=batch,
        is_read=True,
    )


def ended(record: TransactionRecord, when: datetime) -> TransactionRecord:
    return record.moved_to(COMPLETE_COMMIT, when)


def test_first_decision_of_a_query_is_taken() -> None:
    check_append(EMPTY, 0, [row(0, at(1)), row(0, at(1), partition=1)])


def test_next_decision_with_the_end_of_the_batch_before_is_taken() -> None:
    before = row(4, at(1))
    check_append(tail(before), 5, [ended(before, at(2)), row(5, at(2))])


def test_next_decision_without_the_end_of_the_batch_before_is_refused() -> None:
    before = [row(4, at(1), partition=p, partitions=2) for p in (0, 1)]
    with pytest.raises(CorruptLogError, match="-1 is in PrepareCommit for batch 4"):
        check_append(tail(*before), 5, [ended(before[0], at(2)), row(5, at(2))])


def test_new_transaction_of_an_id_whose_last_one_is_pending_is_refused() -> None:
    with pytest.raises(CorruptLogError, match="from PrepareCommit to Ongoing"):
        check_append(tail(row(4, at(1))), 4, [row(4, at(2), epoch=5)])


def test_lost_batch_is_decided_again_after_its_abort_was_logged() -> None:
    lost = row(4, at(1)).moved_to(COMPLETE_ABORT, at(2))
    check_append(tail(lost), 4, [row(4, at(3), epoch=5)])


def test_query_that_comes_back_from_the_dead_starts_anew() -> None:
    check_append(tail(row(4, at(1), state=DEAD)), 5, [row(5, at(2))])


def test_abort_with_intent_and_end_in_one_append_is_taken() -> None:
    states = (TransactionState.PREPARE_ABORT, COMPLETE_ABORT)
    check_append(EMPTY, 0, [row(0, at(1), state=state) for state in states])


@pytest.mark.parametrize("state", [COMPLETE_COMMIT, COMPLETE_ABORT, DEAD])
def test_end_without_an_intent_is_refused(state: TransactionState) -> None:
    with pytest.raises(CorruptLogError, match="from Ongoing"):
        check_append(EMPTY, 0, [row(0, at(1), state=state)])


def test_second_end_of_a_transaction_is_refused() -> None:
    done = row(4, at(1), state=COMPLETE_COMMIT)
    with pytest.raises(CorruptLogError, match="from CompleteCommit to CompleteAbort"):
        check_append(tail(done), 4, [row(4, at(2), state=COMPLETE_ABORT)])


def test_intent_to_abort_what_is_committed_is_refused() -> None:
    done = row(4, at(1), state=COMPLETE_COMMIT)
    with pytest.raises(CorruptLogError, match="it is CompleteCommit already"):
        check_append(tail(done), 4, [row(4, at(2), state=TransactionState.PREPARE_ABORT)])


def test_same_producer_id_and_epoch_on_another_cluster_is_another_transaction() -> None:
    before = replace(row(4, at(1)), cluster_id="home")
    moved = replace(row(5, at(2), epoch=4), cluster_id="elsewhere")
    assert moved.identity == before.identity
    check_append(tail(before), 5, [before.moved_to(COMPLETE_COMMIT, at(2)), moved])


def test_batch_before_the_last_one_is_refused() -> None:
    with pytest.raises(CorruptLogError, match="the log is at batch 4 already"):
        check_append(tail(row(4, at(1))), 3, [row(3, at(2))])


def test_row_of_another_query_is_refused() -> None:
    with pytest.raises(CorruptLogError, match=OTHER):
        check_append(EMPTY, 0, [row(0, at(1), query_id=OTHER)])


def test_row_of_a_third_batch_is_refused() -> None:
    before = row(4, at(1), state=COMPLETE_COMMIT)
    with pytest.raises(CorruptLogError, match="a row of batch 3"):
        check_append(tail(before), 5, [row(5, at(2)), row(3, at(2), partition=1)])


def test_row_that_is_not_after_the_newest_is_refused() -> None:
    before = row(4, at(1), state=COMPLETE_COMMIT)
    with pytest.raises(CorruptLogError, match="not after the newest"):
        check_append(tail(before), 5, [row(5, at(1))])


def test_append_of_nothing_is_refused() -> None:
    with pytest.raises(CorruptLogError, match="nothing to append"):
        check_append(EMPTY, 0, [])
