"""Every state against every target. The expected table is written out, as Kafka has it."""

import itertools

import pytest

from spark_eos._protocol.transactions.state import (
    OVERTAKEN,
    VALID_PREVIOUS_STATES,
    TransactionState,
    state_named,
    state_numbered,
    transition,
)
from spark_eos.errors import CorruptLogError

# A row a state, with the states that may follow it, in Kafka's names: the other way around than in
# the product, so that it is no copy of its table.
KAFKA_FOLLOWERS = {
    "Empty": {"Empty", "Ongoing", "PrepareAbort", "Dead"},
    "Ongoing": {"Ongoing", "PrepareCommit", "PrepareAbort", "PrepareEpochFence"},
    "PrepareCommit": {"CompleteCommit"},
    "PrepareAbort": {"CompleteAbort"},
    "CompleteCommit": {"Empty", "Ongoing", "PrepareAbort", "Dead"},
    "CompleteAbort": {"Empty", "Ongoing", "PrepareAbort", "Dead"},
    "Dead": set(),
    "PrepareEpochFence": {"PrepareAbort"},
}
NUMBERS = {
    "Empty": 0,
    "Ongoing": 1,
    "PrepareCommit": 2,
    "PrepareAbort": 3,
    "CompleteCommit": 4,
    "CompleteAbort": 5,
    "Dead": 6,
    "PrepareEpochFence": 7,
}
PAIRS = list(itertools.product(TransactionState, repeat=2))


@pytest.mark.parametrize(("current", "target"), PAIRS, ids=lambda s: s.wire_name)
def test_transition_is_kafkas_plus_the_one_that_is_overtaken(current, target):
    allowed = target.wire_name in KAFKA_FOLLOWERS[current.wire_name]
    if allowed or (current.wire_name, target.wire_name) == ("PrepareCommit", "CompleteAbort"):
        assert transition(current, target) is target
    else:
        with pytest.raises(CorruptLogError, match=f"{current.wire_name} to {target.wire_name}"):
            transition(current, target)


def test_kafkas_own_table_does_not_have_the_overtaken_decision():
    current, target = OVERTAKEN
    assert current not in VALID_PREVIOUS_STATES[target]


def test_numbers_and_names_are_kafkas():
    assert {state.wire_name: state.number for state in TransactionState} == NUMBERS
    for name, number in NUMBERS.items():
        assert state_named(name) is state_numbered(number)


def test_unknown_name_and_number_are_refused():
    with pytest.raises(CorruptLogError, match="Committing"):
        state_named("Committing")
    with pytest.raises(CorruptLogError, match="8"):
        state_numbered(8)


def test_only_written_intents_are_pending():
    pending = {state.wire_name for state in TransactionState if state.is_pending}
    assert pending == {"PrepareCommit", "PrepareAbort"}
