"""Planner and commit worker. Recovery and abort: fence ids, and abort what they have open.

This is for a transaction of which only the id is known: a task sent no message, a commit failed or
a driver died. The next owner of the id would fence it too, but until then readers would wait.
"""

from collections.abc import Sequence
from typing import Final

from spark_eos._deadline import Deadline
from spark_eos._protocol.transactions.state import TransactionState
from spark_eos._protocol.transactions.transaction import ProducerIdentity
from spark_eos._protocol.transactions.transactional_id import parse_transactional_id
from spark_eos._session import Session

# Spark kills a Python worker this long after it cancels the task: spark.python.task.killTimeout.
_KILL_TIMEOUT_S: Final = 2.0
_WATCH_S: Final = _KILL_TIMEOUT_S + 0.5
_LOOK_EVERY_S: Final = 0.1


def abort_orphans(session: Session, deadline: Deadline) -> list[str]:
    """Fence every open transaction of the query, and return their ids.

    Call this after EndTxn of every decided transaction: what is still open is an orphan. A fence
    bumps the epoch, so a task that outlives its driver cannot go on. Only the query id is compared,
    because the prefix may have changed since.
    """
    orphans = [
        listing.transactional_id
        for listing in session.cluster.coordinator.list_open(deadline)
        if listing.state is TransactionState.ONGOING
        and (parsed := parse_transactional_id(listing.transactional_id)) is not None
        and parsed.query_id == session.query_id
    ]
    if orphans:
        _fence(session, orphans, deadline)
    return orphans


def fence_open(session: Session, transactional_id: str, deadline: Deadline) -> None:
    """End the driver's own transaction that a failed commit left. No task can have it."""
    coordinator = session.cluster.coordinator
    found = coordinator.describe([transactional_id], deadline)[transactional_id]
    if found is not None and found.state is TransactionState.ONGOING:
        _fence(session, [transactional_id], deadline)


def fence_running(session: Session, transactional_ids: Sequence[str], deadline: Deadline) -> None:
    """Fence ids whose tasks may still run, again and again until Spark has killed every task."""
    watch = deadline.at_most_s(_WATCH_S)
    fenced: dict[str, ProducerIdentity] = {}
    while transactional_ids:
        found = session.cluster.coordinator.describe(transactional_ids, deadline)
        # An id that nobody used is left out: a fence would make the coordinator remember it.
        used = {name: now.identity for name, now in found.items() if now is not None}
        moved = [name for name, identity in used.items() if fenced.get(name) != identity]
        if moved:
            fenced |= _fence(session, moved, deadline)
        if watch.passed:
            return
        session.clock.sleep(_LOOK_EVERY_S)


def _fence(
    session: Session, transactional_ids: Sequence[str], deadline: Deadline
) -> dict[str, ProducerIdentity]:
    return session.cluster.coordinator.fence(
        transactional_ids, timeout_ms=session.options.transaction_timeout_ms, deadline=deadline
    )
