"""A batch write without a log: before the first commit request all is aborted, after it nothing."""

import time
from dataclasses import replace

import pytest

from spark_eos._deadline import Deadline
from spark_eos._kafka.coordinator.client import EndAnswer
from spark_eos._options import batch_write_options
from spark_eos._protocol.offsets.topic_partition import PartitionOffsets
from spark_eos._protocol.transactions.batch import RecoveredQuery, TaskResult
from spark_eos._protocol.transactions.outcome import Api, ErrorCode, outcome_of
from spark_eos._protocol.transactions.state import TransactionState
from spark_eos._protocol.transactions.transaction import (
    PreparedTransaction,
    ProducerIdentity,
    TransactionDescription,
)
from spark_eos._sink.driver.abort import abort
from spark_eos._sink.driver.commit_without_log import commit_without_log
from spark_eos._sink.message import TaskMessage
from spark_eos._sink.task.context import Task
from spark_eos.errors import BrokerUnreachableError, OperatorError, TransactionLostError
from tests.steps import session_with

OPTIONS = batch_write_options({"kafka.bootstrap.servers": "b:1", "topic": "invoices"})
OK, LOST = ErrorCode.NONE, ErrorCode.PRODUCER_FENCED
RECOVERED = RecoveredQuery(query_id=OPTIONS.query_id, recovered_at=time.monotonic())
TIMED_OUT, MOVED = ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_COORDINATOR


def message(partition, *, rows=1):
    """A task that has prepared its rows; without rows there is no transaction."""
    offsets = PartitionOffsets(
        topic="invoices", partition=0, first_offset=0, last_offset=0, records=rows
    )
    identity = ProducerIdentity(
        transactional_id=f"spark-eos-{OPTIONS.query_id}-{partition}",
        producer_id=partition,
        producer_epoch=0,
    )
    prepared = PreparedTransaction(
        identity=identity, transaction_timeout_ms=900_000, partitions=(offsets,)
    )
    return TaskMessage(
        task=Task(query_id=OPTIONS.query_id, run_id="r", batch_id=0, partition=partition),
        result=TaskResult(
            partition=partition,
            records=rows,
            digest=f"1:{rows}:0000000000000000",
            transaction=prepared if rows else None,
        ),
        recovered=RECOVERED,
    )


class Coordinator:
    """Answers commits with `codes`, one for each transaction, and remembers what it was asked."""

    def __init__(self, *codes, states=None, leaders=None):
        self.codes, self.states, self.leaders = codes, states or {}, leaders
        self.ended = []
        self.fenced = []

    def await_leaders(self, partitions, _topic_ids, _deadline):
        assert partitions == {("invoices", 0)}
        if self.leaders is not None:
            raise self.leaders
        return {}

    def describe(self, ids, _deadline):
        return {name: self._description(name) for name in ids}

    def _description(self, name):
        number = int(name.rpartition("-")[2])
        identity = ProducerIdentity(transactional_id=name, producer_id=number, producer_epoch=0)
        return TransactionDescription(
            identity=identity,
            state=self.states.get(number, TransactionState.ONGOING),
            timeout_ms=900_000,
            start_time_ms=None,
        )

    def cluster_id(self, _deadline):
        return "here"

    def fence(self, transactional_ids, *, timeout_ms, deadline):  # noqa: ARG002 - the product's
        self.fenced += transactional_ids
        return {
            name: ProducerIdentity(transactional_id=name, producer_id=1, producer_epoch=0)
            for name in transactional_ids
        }

    def end(self, transactions, *, committed, deadline):
        assert not deadline.passed
        self.ended += [(t.producer_id, "commit" if committed else "abort") for t in transactions]
        codes = self.codes if committed else [OK] * len(transactions)
        return {
            t.transactional_id: EndAnswer(outcome=outcome_of(Api.END_TXN, code), code=code)
            for t, code in zip(transactions, codes, strict=True)
        }


@pytest.fixture
def commit():
    def run(coordinator, *messages):
        session = session_with(coordinator, OPTIONS.query_id, options=OPTIONS)
        commit_without_log(session, messages, 0, Deadline.after_ms(30_000))

    return run


def test_all_transactions_are_committed(commit):
    coordinator = Coordinator(OK, OK)
    commit(coordinator, message(0), message(1, rows=0), message(2))
    assert coordinator.ended == [(0, "commit"), (2, "commit")]


def test_write_without_rows_asks_nobody(commit):
    coordinator = Coordinator()
    commit(coordinator, message(0, rows=0))
    assert coordinator.ended == []


@pytest.mark.parametrize(
    ("coordinator", "error", "text"),
    [
        (
            Coordinator(leaders=BrokerUnreachableError("invoices-0 has no leader")),
            BrokerUnreachableError,
            "can be run again: invoices-0 has no leader",
        ),
        (
            Coordinator(states={1: TransactionState.COMPLETE_ABORT}),
            TransactionLostError,
            "is CompleteAbort, not Ongoing.*Nothing was decided, so run the write again",
        ),
    ],
    ids=["no leader", "timed out"],
)
def test_failure_before_the_first_commit_request_aborts_all(commit, coordinator, error, text):
    with pytest.raises(error, match=f"^nothing of this batch write is visible.*{text}"):
        commit(coordinator, message(0), message(1))
    assert coordinator.ended == [(0, "abort"), (1, "abort")]


def test_whatever_fails_before_the_first_commit_request_all_is_aborted(commit):
    coordinator = Coordinator(leaders=ZeroDivisionError("a mistake"))
    with pytest.raises(ZeroDivisionError, match="a mistake"):
        commit(coordinator, message(0), message(1))
    assert coordinator.ended == [(0, "abort"), (1, "abort")]


@pytest.mark.parametrize(
    ("codes", "text"),
    [
        ((OK, TIMED_OUT, TIMED_OUT), "committed: 1; not known: 2 (REQUEST_TIMED_OUT); not"),
        ((TIMED_OUT, LOST, OK), "not known: 1 (REQUEST_TIMED_OUT); not committed: 1 (PRODUCER_F"),
        ((OK, LOST, OK), "committed: 2; not known: 0; not committed: 1 (PRODUCER_FENCED)."),
        (
            (TIMED_OUT, MOVED, LOST),
            "committed: 0; not known: 2 (NOT_COORDINATOR, REQUEST_TIMED_OUT",
        ),
        ((TIMED_OUT, TIMED_OUT, TIMED_OUT), "to be committed: 0; not known: 3 (REQUEST_TIMED_OUT)"),
    ],
)
def test_write_that_may_be_visible_in_part_says_so(commit, codes, text):
    coordinator = Coordinator(*codes)
    with pytest.raises(OperatorError) as caught:
        commit(coordinator, *(message(n) for n in range(3)))
    assert text in str(caught.value)
    for more in (
        "the batch write to invoices may be visible in part. Transactions known to be committed:",
        "Running the write again doubles the rows that are visible",
        "ended by their time-out (kafka.transaction.timeout.ms is 900000)",
        "A write with transactionLog, txnAppId and txnVersion can be run again safely",
    ):
        assert more in str(caught.value)
    assert {word for _, word in coordinator.ended} == {"commit"}


def test_write_of_which_every_transaction_was_refused_can_be_run_again(commit):
    coordinator = Coordinator(LOST, LOST)
    with pytest.raises(
        TransactionLostError, match=r"FENCED.*Nothing of it is visible: run the wri"
    ):
        commit(coordinator, message(0), message(1))
    assert {word for _, word in coordinator.ended} == {"commit"}


def test_abort_with_every_message_ends_nothing():
    """`commit` may run in another process, and may have sent its first request."""
    coordinator = Coordinator()
    session = session_with(coordinator, OPTIONS.query_id, options=OPTIONS)
    abort(session, [message(0), message(1)], 0, 2)
    abort(session, [], 0, 0)
    assert coordinator.ended == []


def test_abort_that_misses_a_message_ends_the_others():
    coordinator = Coordinator(states={1: TransactionState.EMPTY})
    soon = replace(OPTIONS, api_timeout_ms=200)  # so long the task that sent nothing is watched
    abort(session_with(coordinator, OPTIONS.query_id, options=soon), [message(0)], 0, 2)
    assert coordinator.ended == [(0, "abort")]
    assert coordinator.fenced == [f"spark-eos-{OPTIONS.query_id}-1"]
