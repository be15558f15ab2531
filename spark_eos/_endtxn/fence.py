"""Planner and commit worker. Take ids away from whoever uses them, and abort what that has open.

Where nothing is known of a transaction but its id: a task that sent no message, a commit that
failed, a driver that died. The next owner of an id fences it anyway; to do it now is for the
readers, which would wait.
"""

from collections.abc import Sequence
from typing import Final

from spark_eos._deadline import Deadline
from spark_eos._protocol.transactions.state import TransactionState
from spark_eos._protocol.transactions.transactional_id import parse_transactional_id
from spark_eos._session import Session

# Spark kills a Python worker this long after its task was cancelled: spark.python.task.killTimeout.
_KILL_TIMEOUT_S: Final = 2.0
_WATCH_S: Final = _KILL_TIMEOUT_S + 0.5
_LOOK_EVERY_S: Final = 0.1


def abort_orphans(session: Session, deadline: Deadline) -> list[str]:
    """Fence every open transaction of the query; returns their ids. Behind recovery, on the first
    plan of a run, after a failure, and every so often.

    A decided one has been completed just before, so what is still open is an orphan, whatever its
    partition. To fence it bumps the epoch, so a task of a dead driver that still lives cannot go on
    with it. An id belongs to the query if its parsed query id is equal; the prefix may have been
    changed since.
    """
    orphans = []
    for listing in session.cluster.coordinator.list_open(deadline):
        parsed = parse_transactional_id(listing.transactional_id)
        if (
            parsed is not None
            and parsed.query_id == session.query_id
            and listing.state is TransactionState.ONGOING
        ):
            orphans.append(listing.transactional_id)
    if orphans:
        _fence(session, orphans, deadline)
    return orphans


def fence_open(session: Session, transactional_id: str, deadline: Deadline) -> None:
    """End the driver's own transaction, which a commit that failed has left. No task has it."""
    coordinator = session.cluster.coordinator
    found = coordinator.describe([transactional_id], deadline)[transactional_id]
    if found is not None and found.state is TransactionState.ONGOING:
        _fence(session, [transactional_id], deadline)


def fence_running(session: Session, transactional_ids: Sequence[str], deadline: Deadline) -> None:
    """Fence ids whose task may still run, again and again until none can be left."""
    watch = deadline.at_most_s(_WATCH_S)
    fenced: dict[str, tuple[int, int]] = {}
    while transactional_ids:
        found = session.cluster.coordinator.describe(transactional_ids, deadline)
        # An id that nobody used is left alone: to fence it would make the coordinator remember it.
        used = {
            name: (description.identity.producer_id, description.identity.producer_epoch)
            for name, description in found.items()
            if description is not None
        }
        moved = [name for name, epoch in used.items() if fenced.get(name) != epoch]
        if moved:
            fenced |= _fence(session, moved, deadline)
        if watch.passed:
            return
        session.clock.sleep(_LOOK_EVERY_S)


def _fence(
    session: Session, transactional_ids: Sequence[str], deadline: Deadline
) -> dict[str, tuple[int, int]]:
    """Bump the epoch of each; returns producer id and epoch of each."""
    fenced = session.cluster.coordinator.fence(
        transactional_ids, timeout_ms=session.options.transaction_timeout_ms, deadline=deadline
    )
    return {name: (now.producer_id, now.producer_epoch) for name, now in fenced.items()}
