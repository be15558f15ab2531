"""The look before the decision: an answer from the past is asked for again."""

import pytest

from spark_eos._deadline import Deadline
from spark_eos._protocol.transactions.state import TransactionState
from spark_eos._sink.driver import decide
from spark_eos.errors import TransactionLostError
from tests.steps import session_with
from tests.unit.protocol.builders import description, result, running

BATCH = running(result(0, epoch=3))
NAME = BATCH.results[0].transaction.identity.transactional_id
OLD, NOW = description(epoch=2), description(epoch=3)


class Coordinator:
    """Gives its answers one after the other, and the last one for ever."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.asked = 0

    def describe(self, ids, _deadline):
        self.asked += 1
        answer = self.answers[min(self.asked, len(self.answers)) - 1]
        return dict.fromkeys(ids, answer)

    def await_leaders(self, _partitions, _topic_ids, _deadline):
        return {}


def check(coordinator):
    session = session_with(coordinator, BATCH.query_id)
    decide.check(session, BATCH, session.clock.monotonic(), Deadline.after_ms(10_000))


def test_coordinator_that_was_frozen_is_asked_again():
    coordinator = Coordinator(OLD, description(epoch=3, state=TransactionState.EMPTY), NOW)
    check(coordinator)
    assert coordinator.asked == 3


def test_answer_of_now_is_not_asked_for_again():
    taken_over = Coordinator(description(epoch=4))
    with pytest.raises(TransactionLostError, match="now at epoch 4"):
        check(taken_over)
    assert taken_over.asked == 1


def test_coordinator_that_stays_in_the_past_is_given_up(monkeypatch):
    monkeypatch.setattr(decide, "OUTDATED_S", 0.05)
    with pytest.raises(TransactionLostError, match="now at epoch 2"):
        check(Coordinator(OLD))
