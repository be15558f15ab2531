"""Planner worker, at the first batch of a run. Abort what earlier runs of this query left open.

When a batch is planned no task of the query runs, so each of its transactions that is still open
is an orphan, whatever its partition: a decided one has been completed just before. To fence it
bumps the epoch, so a task of a dead driver that still lives cannot go on with it. An id belongs
to the query if its parsed query id is equal; the prefix may have been changed since.
"""

from spark_eos.deadline import Deadline
from spark_eos.kafka.coordinator import CoordinatorClient
from spark_eos.protocol.state import TransactionState
from spark_eos.protocol.transactional_id import parse_transactional_id


def abort_orphans(
    query_id: str, *, coordinator: CoordinatorClient, timeout_ms: int, deadline: Deadline
) -> list[str]:
    """Fence every open transaction of the query; returns their ids."""
    orphans = []
    for listing in coordinator.list_open(deadline):
        parsed = parse_transactional_id(listing.transactional_id)
        if (
            parsed is not None
            and parsed.query_id == query_id
            and listing.state is TransactionState.ONGOING
        ):
            orphans.append(listing.transactional_id)
    if orphans:
        coordinator.fence(orphans, timeout_ms=timeout_ms, deadline=deadline)
    return orphans
