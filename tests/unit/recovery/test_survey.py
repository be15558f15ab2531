"""What the coordinators' answers about decided transactions mean."""

import pytest

from spark_eos.errors import OptionError
from spark_eos.kafka.client_config import ClientConfig
from spark_eos.kafka.coordinator import EndAnswer
from spark_eos.protocol.deadline import Deadline
from spark_eos.protocol.outcome import Api, ErrorCode, outcome_of
from spark_eos.recovery.survey import survey
from tests.unit.protocol.builders import record


class Coordinator:
    """Answers every EndTxn with one code."""

    def __init__(self, code):
        self._answer = EndAnswer(outcome=outcome_of(Api.END_TXN, code), code=code)

    def await_leaders(self, partitions, deadline):
        pass

    def end(self, transactions, *, committed, deadline):  # noqa: ARG002 - the product's
        assert committed
        return {t.transactional_id: self._answer for t in transactions}


def test_right_that_was_taken_away_says_nothing_of_a_transaction():
    """It is open, and decided: to take it for lost, or to end it as an orphan, would lose it."""
    with pytest.raises(OptionError, match=r"batch 7 .* is decided.*grant this user WRITE"):
        survey(
            [record()],
            config=ClientConfig.from_options({"bootstrap.servers": "127.0.0.1:1"}),
            coordinator=Coordinator(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
            deadline=Deadline.after_ms(1_000),
            end_orphans=lambda: pytest.fail("orphans were ended"),
        )
