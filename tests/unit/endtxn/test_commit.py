"""What the coordinators' answers about decided transactions mean."""

from dataclasses import replace

import pytest

from spark_eos._deadline import Deadline
from spark_eos._endtxn.commit import commit_decided
from spark_eos._kafka.coordinator.client import EndAnswer
from spark_eos._protocol.transactions.outcome import Api, ErrorCode, outcome_of
from spark_eos.errors import CorruptLogError, OperatorError, OptionError
from tests.steps import session_with
from tests.unit.protocol.builders import record


class Coordinator:
    """Answers every EndTxn with one code."""

    def __init__(self, code):
        self._answer = EndAnswer(outcome=outcome_of(Api.END_TXN, code), code=code)

    def await_leaders(self, _partitions, _topic_ids, _deadline):
        return {}

    def cluster_id(self, _deadline):
        return "here"

    def list_open(self, _deadline):
        pytest.fail("orphans are looked for")

    def end(self, transactions, *, committed, deadline):  # noqa: ARG002 - the product's
        assert committed
        return {t.transactional_id: self._answer for t in transactions}


def test_right_that_was_taken_away_says_nothing_of_a_transaction():
    """It is open, and decided: to take it for lost, or to end it as an orphan, would lose it."""
    coordinator = Coordinator(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    session = session_with(coordinator, record().query_id)
    with pytest.raises(OptionError, match=r"batch 7 .* is decided.*grant WRITE"):
        commit_decided(session, [record()], Deadline.after_ms(1_000), end_orphans=True)


def test_row_that_names_an_id_of_another_query_ends_nothing():
    foreign = replace(record(), query_id="11111111-2222-4333-8444-555555555555")
    session = session_with(Coordinator(ErrorCode.NONE), foreign.query_id)
    with pytest.raises(CorruptLogError, match=r"which is not an id of this query"):
        commit_decided(session, [foreign], Deadline.after_ms(1_000))


def test_decision_of_another_cluster_is_not_asked_for_here():
    elsewhere = replace(record(), cluster_id="elsewhere")
    session = session_with(Coordinator(ErrorCode.NONE), elsewhere.query_id)
    with pytest.raises(OperatorError, match=r"is decided on the Kafka cluster elsewhere"):
        commit_decided(session, [elsewhere], Deadline.after_ms(1_000))
