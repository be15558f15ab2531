"""Pure. The state table: Kafka's eight transaction states, and which may follow which.

As in Kafka's `TransactionState`, each state owns the set of states that it may be entered from. The
check, the exhaustive test and the diagram in ARCHITECTURE.md come from `VALID_PREVIOUS_STATES`. The
numbers are those of `__transaction_state`, the names those of DescribeTransactions and of the log.
"""

from enum import Enum
from typing import Final

from spark_eos.errors import CorruptLogError


class TransactionState(Enum):
    """A state of one transaction, with the number that Kafka stores."""

    EMPTY = ("Empty", 0)
    ONGOING = ("Ongoing", 1)
    PREPARE_COMMIT = ("PrepareCommit", 2)
    PREPARE_ABORT = ("PrepareAbort", 3)
    COMPLETE_COMMIT = ("CompleteCommit", 4)
    COMPLETE_ABORT = ("CompleteAbort", 5)
    DEAD = ("Dead", 6)
    PREPARE_EPOCH_FENCE = ("PrepareEpochFence", 7)

    def __init__(self, wire_name: str, number: int) -> None:
        self.wire_name = wire_name
        self.number = number

    @property
    def is_pending(self) -> bool:
        """Whether the intent is written but not the end: somebody has to finish it."""
        return self in (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)


_S = TransactionState

VALID_PREVIOUS_STATES: dict[TransactionState, frozenset[TransactionState]] = {
    _S.EMPTY: frozenset({_S.EMPTY, _S.COMPLETE_COMMIT, _S.COMPLETE_ABORT}),
    _S.ONGOING: frozenset({_S.ONGOING, _S.EMPTY, _S.COMPLETE_COMMIT, _S.COMPLETE_ABORT}),
    _S.PREPARE_COMMIT: frozenset({_S.ONGOING}),
    # From Empty and the complete states only under transaction protocol 2 (KIP-890), where an
    # abort without any record also bumps the epoch.
    _S.PREPARE_ABORT: frozenset(
        {_S.ONGOING, _S.PREPARE_EPOCH_FENCE, _S.EMPTY, _S.COMPLETE_COMMIT, _S.COMPLETE_ABORT}
    ),
    _S.COMPLETE_COMMIT: frozenset({_S.PREPARE_COMMIT}),
    _S.COMPLETE_ABORT: frozenset({_S.PREPARE_ABORT}),
    _S.DEAD: frozenset({_S.EMPTY, _S.COMPLETE_COMMIT, _S.COMPLETE_ABORT}),
    _S.PREPARE_EPOCH_FENCE: frozenset({_S.ONGOING}),
}

# Decided to be committed, whether or not all markers are written.
COMMITTED_STATES: Final = (_S.PREPARE_COMMIT, _S.COMPLETE_COMMIT)

# The one step that Kafka's table does not have (ARCHITECTURE.md, States). While the decision is in
# the log, Kafka's transaction is still Ongoing and may time out before EndTxn arrives.
OVERTAKEN = (_S.PREPARE_COMMIT, _S.COMPLETE_ABORT)

_BY_NAME = {state.wire_name: state for state in TransactionState}
_BY_NUMBER = {state.number: state for state in TransactionState}


def state_named(wire_name: str) -> TransactionState:
    """The state with Kafka's name."""
    try:
        return _BY_NAME[wire_name]
    except KeyError:
        raise CorruptLogError("unknown transaction state '{name}'", name=wire_name) from None


def state_numbered(number: int) -> TransactionState:
    """The state with Kafka's number."""
    try:
        return _BY_NUMBER[number]
    except KeyError:
        raise CorruptLogError("unknown transaction state number {number}", number=number) from None


def transition(current: TransactionState, target: TransactionState) -> TransactionState:
    """Return `target` if it may follow `current` in the log; else raise and change nothing."""
    if current not in VALID_PREVIOUS_STATES[target] and (current, target) != OVERTAKEN:
        raise CorruptLogError(
            "a transaction cannot go from {current} to {target}",
            current=current.wire_name,
            target=target.wire_name,
        )
    return target
