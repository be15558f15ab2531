"""Planner worker. Before a batch: check the job against the cluster, then recover (step 1).

The cluster is checked at the first batch that this process plans for a query, and the query is
taken over from whichever driver had it before. Orphans are looked for then too, and whenever the
log has not moved since the batch before, or does not have that one as complete: it failed or was
stopped, and may have left something open. And every so often, because a task of a driver that was
overtaken may open one late, under an id that no batch uses again for long. All may happen in the
middle of a run, and are harmless there.
"""

import time
from dataclasses import dataclass, replace
from typing import Final

from spark_eos.deadline import Deadline
from spark_eos.errors import OperatorError
from spark_eos.failpoints import failpoint
from spark_eos.log import TransactionLog
from spark_eos.options import SinkOptions
from spark_eos.protocol.replay import QueryTail
from spark_eos.recovery.checkpoint import Checkpoint
from spark_eos.recovery.edited_checkpoint import check_input_as_logged
from spark_eos.recovery.group_offsets import restore_group_offsets
from spark_eos.recovery.orphans import abort_orphans
from spark_eos.recovery.recover import recover
from spark_eos.sink.cluster import check_cluster
from spark_eos.sink.connections import coordinator_client, ownership, transaction_log

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
    log = transaction_log(options.transaction_log, query_id, options.checkpoint_location)
    owner = ownership(options, query_id, log)
    if before is not None and owner.is_overtaken():
        del _planned[key]
        raise owner.fenced()
    if before is None or not _has_gone_on(before, log.last_batch_id(query_id)):
        _check_same_query(options, query_id, log)
        owner.take_over(deadline)
        check_input_as_logged(
            query_id, log=log, checkpoint=checkpoint, ownership=owner, deadline=deadline
        )
    tail = recover(
        query_id,
        log=log,
        checkpoint=checkpoint,
        config=options.client,
        coordinator=coordinator,
        ownership=owner,
        timeout_ms=options.transaction_timeout_ms,
        deadline=deadline,
    )
    is_first = before is None
    if before is None or _may_have_orphans(before, tail, now):
        abort_orphans(
            query_id,
            coordinator=coordinator,
            timeout_ms=options.transaction_timeout_ms,
            deadline=deadline,
        )
        before = _Planned(tail.last_batch_id, orphans_at=now)
    if is_first:  # behind the orphans: an open one may move the group
        _restore_group(options, query_id, log, tail, deadline)
    _planned[key] = replace(before, last_batch_id=tail.last_batch_id)
    failpoint("planned")
    return tail


def _restore_group(
    options: SinkOptions, query_id: str, log: TransactionLog, tail: QueryTail, deadline: Deadline
) -> None:
    """The offsets of a group that nothing moved for long have expired: the log still has them."""
    group_id = options.group_id
    last = log.last_batch(query_id) if group_id is not None and tail.complete else None
    for record in last.records if last is not None else ():
        if group_id is not None and record.group_id == group_id and record.source_offsets:
            restore_group_offsets(options.client, group_id, record.source_offsets, deadline)


def _has_gone_on(before: _Planned, last_batch_id: int | None) -> bool:
    """Whether the log has a newer batch than before. If not, the query may have been started again,
    on a log that may have been restored.
    """
    if last_batch_id is None or before.last_batch_id is None:
        return last_batch_id is not None
    return last_batch_id > before.last_batch_id


def _may_have_orphans(before: _Planned, tail: QueryTail, now: float) -> bool:
    is_long_ago = now - before.orphans_at > _LOOK_FOR_ORPHANS_EVERY_S
    return is_long_ago or not _has_gone_on(before, tail.last_batch_id) or not tail.complete


def _check_same_query(options: SinkOptions, query_id: str, log: TransactionLog) -> None:
    """A log inside of the checkpoint belongs to one query: the one that the checkpoint is of."""
    if options.log_is_shared or log.knows(query_id) or log.version == 0:
        return
    raise OperatorError(
        f"the transaction log in checkpointLocation '{options.checkpoint_location}' holds another"
        f" query than {query_id}: the checkpoint's file 'metadata' was replaced, and"
        " the last batch could be written twice. Restore it, or start with a new checkpointLocation"
    )
