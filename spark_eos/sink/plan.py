"""Planner worker. Before a batch: check the job against the cluster, then recover (step 1).

The cluster is checked at the first batch that this process plans for a query. Orphans are looked
for then too, and whenever the log has not moved since the batch before, or does not have that one
as complete: it failed or was stopped, and may have left something open. And every so often, because
a task of a driver that was overtaken may open one late, under an id that no batch uses again for
long. All may happen in the middle of a run, and are harmless there.
"""

import time
from dataclasses import dataclass, replace
from typing import Final

from spark_eos.errors import OperatorError
from spark_eos.failpoints import failpoint
from spark_eos.log import TransactionLog
from spark_eos.options import SinkOptions
from spark_eos.protocol.deadline import Deadline
from spark_eos.protocol.replay import QueryTail
from spark_eos.recovery.checkpoint import Checkpoint
from spark_eos.recovery.lost_log import check_log_is_the_querys
from spark_eos.recovery.orphans import abort_orphans
from spark_eos.recovery.recover import recover
from spark_eos.sink.cluster import check_cluster
from spark_eos.sink.connections import coordinator_client, transaction_log

# A look costs a request to each broker.
_LOOK_FOR_ORPHANS_EVERY_S: Final = 30.0


@dataclass(frozen=True, slots=True)
class _Planned:
    """When this process planned the query's batch before."""

    last_batch_id: int | None
    orphans_at: float  # when they were looked for, by the monotonic clock


_planned: dict[tuple[SinkOptions, str], _Planned] = {}


def plan_batch(options: SinkOptions) -> QueryTail:
    """What the tasks must know of the log's tail, when nothing of an earlier run is left over."""
    deadline = Deadline.after_ms(options.api_timeout_ms)
    checkpoint = Checkpoint(options.checkpoint_location)
    query_id = checkpoint.query_id()
    key = (options, query_id)
    before, now = _planned.get(key), time.monotonic()
    if before is None:
        check_cluster(options, deadline)
    coordinator = coordinator_client(options.client)
    log = transaction_log(options.transaction_log, query_id)
    tail = recover(
        query_id,
        log=log,
        checkpoint=checkpoint,
        config=options.client,
        coordinator=coordinator,
        timeout_ms=options.transaction_timeout_ms,
        deadline=deadline,
    )
    if before is None or _may_have_orphans(before, tail, now):
        _check_same_query(options, log, tail)
        check_log_is_the_querys(tail, log=log, coordinator=coordinator, deadline=deadline)
        abort_orphans(
            query_id,
            coordinator=coordinator,
            timeout_ms=options.transaction_timeout_ms,
            deadline=deadline,
        )
        before = _Planned(tail.last_batch_id, orphans_at=now)
    _planned[key] = replace(before, last_batch_id=tail.last_batch_id)
    failpoint("planned")
    return tail


def _may_have_orphans(before: _Planned, tail: QueryTail, now: float) -> bool:
    is_long_ago = now - before.orphans_at > _LOOK_FOR_ORPHANS_EVERY_S
    return is_long_ago or before.last_batch_id == tail.last_batch_id or not tail.complete


def _check_same_query(options: SinkOptions, log: TransactionLog, tail: QueryTail) -> None:
    """A log inside of the checkpoint belongs to one query: the one that the checkpoint is of."""
    if options.log_is_shared or tail.last_batch_id is not None or log.version == 0:
        return
    raise OperatorError(
        f"the transaction log in checkpointLocation '{options.checkpoint_location}' holds another"
        f" query than {tail.query_id}: the checkpoint's file 'metadata' was replaced, and"
        " the last batch could be written twice. Restore it, or start with a new checkpointLocation"
    )
