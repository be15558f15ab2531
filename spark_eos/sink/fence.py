"""Commit worker, in `abort`. Take ids away from whoever uses them, and abort what that has open.

Where nothing is known of a transaction but its id: a task that sent no message, or a commit that
failed. The next owner of an id fences it anyway; to do it now is for the readers, which would wait.
"""

import time
from collections.abc import Sequence
from typing import Final

from spark_eos.deadline import Deadline
from spark_eos.kafka.coordinator import CoordinatorClient
from spark_eos.protocol.state import TransactionState

# Spark kills a Python worker this long after its task was cancelled: spark.python.task.killTimeout.
_KILL_TIMEOUT_MS: Final = 2_000
_WATCH_MS: Final = _KILL_TIMEOUT_MS + 500
_LOOK_EVERY_S: Final = 0.1


def fence_open(
    transactional_id: str, coordinator: CoordinatorClient, timeout_ms: int, deadline: Deadline
) -> None:
    """End the driver's own transaction, which a commit that failed has left. No task has it."""
    found = coordinator.describe([transactional_id], deadline)[transactional_id]
    if found is not None and found.state is TransactionState.ONGOING:
        coordinator.fence([transactional_id], timeout_ms=timeout_ms, deadline=deadline)


def fence_running(
    transactional_ids: Sequence[str],
    coordinator: CoordinatorClient,
    timeout_ms: int,
    deadline: Deadline,
) -> None:
    """Fence ids whose task may still run, again and again until none can be left."""
    watch = Deadline.after_ms(min(_WATCH_MS, deadline.remaining_ms))
    fenced: dict[str, tuple[int, int]] = {}
    while transactional_ids:
        found = coordinator.describe(transactional_ids, deadline)
        # An id that nobody used is left alone: to fence it would make the coordinator remember it.
        used = {
            name: (description.identity.producer_id, description.identity.producer_epoch)
            for name, description in found.items()
            if description is not None
        }
        moved = [name for name, epoch in used.items() if fenced.get(name) != epoch]
        if moved:
            for name, identity in coordinator.fence(
                moved, timeout_ms=timeout_ms, deadline=deadline
            ).items():
                fenced[name] = (identity.producer_id, identity.producer_epoch)
        if watch.passed:
            return
        time.sleep(_LOOK_EVERY_S)
