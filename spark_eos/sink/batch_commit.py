"""Planner and commit worker. The driver's part of a batch write.

The same steps as of a micro-batch, without a checkpoint: the completion is logged at once, because
there may never be a next batch that could carry it.
"""

import logging
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from spark_eos.errors import SparkEosError
from spark_eos.failpoints import failpoint
from spark_eos.log import TransactionLog
from spark_eos.options import BatchWriteOptions
from spark_eos.protocol.deadline import Deadline
from spark_eos.protocol.decision import RunningBatch, completion_rows
from spark_eos.protocol.replay import QueryTail
from spark_eos.recovery.orphans import abort_orphans
from spark_eos.recovery.recover import recover
from spark_eos.sink.abort import Attempt, end_attempt
from spark_eos.sink.cluster import check_cluster
from spark_eos.sink.commit import decide_and_complete
from spark_eos.sink.complete import complete
from spark_eos.sink.connections import coordinator_client, transaction_log
from spark_eos.sink.decide import check, is_visible_already
from spark_eos.sink.message import TaskMessage, running_batch, same_batch
from spark_eos.sink.version import check_version

_LOG = logging.getLogger(__name__)
_NO_INPUT_DIGEST = ""  # a batch write has no offsets that could be compared


def plan_write(options: BatchWriteOptions) -> QueryTail:
    """Planner worker. What the tasks must know of the log, when an earlier run is completed."""
    deadline = Deadline.after_ms(options.api_timeout_ms)
    check_cluster(options, deadline)
    if options.transaction_log is None:
        return QueryTail(query_id=options.query_id)
    coordinator = coordinator_client(options.client)
    log = transaction_log(options.transaction_log, options.query_id)
    tail = recover(
        options.query_id,
        log=log,
        checkpoint=None,
        config=options.client,
        coordinator=coordinator,
        timeout_ms=options.transaction_timeout_ms,
        deadline=deadline,
    )
    check_version(options, tail, log=log, coordinator=coordinator, deadline=deadline)
    abort_orphans(
        options.query_id,
        coordinator=coordinator,
        timeout_ms=options.transaction_timeout_ms,
        deadline=deadline,
    )
    failpoint("planned")
    return tail


def commit_write(options: BatchWriteOptions, messages: Sequence[TaskMessage]) -> None:
    """Return when every row is visible."""
    deadline = Deadline.after_ms(options.api_timeout_ms)
    tail = same_batch(messages, options.version)
    batch = _written_batch(messages, len(messages))
    if options.transaction_log is None:
        _commit_without_log(options, batch, messages[0].planned_at, deadline)
        return
    log = transaction_log(options.transaction_log, options.query_id)
    if is_visible_already(batch, tail, log):
        return
    decide_and_complete(batch, options, log, messages[0].planned_at, deadline)
    try:
        _log_completion(options, log)
    except SparkEosError:
        # Every row is visible, and who looks next finds that out. An error would deny it.
        _LOG.warning("version %d is complete, and not logged so", options.version, exc_info=True)


def _log_completion(options: BatchWriteOptions, log: TransactionLog) -> None:
    last = log.last_batch(options.query_id)
    if last is not None and last.pending:
        rows = completion_rows(last, log.next_timestamp(options.query_id))
        log.append(options.query_id, options.version, rows)
    log.maintain()


def _written_batch(messages: Sequence[TaskMessage], sink_partitions: int) -> RunningBatch:
    batch = running_batch(messages, _NO_INPUT_DIGEST, sink_partitions)
    return replace(batch, is_batch_write=True)


def abort_write(
    options: BatchWriteOptions, messages: Sequence[TaskMessage], sink_partitions: int
) -> None:
    """End whatever is open of a write that failed; never what is decided. Does not raise."""
    try:
        _abort_write(options, messages, sink_partitions)
    except Exception:
        _LOG.exception("write %s could not be aborted whole", options.query_id)


def _commit_without_log(
    options: BatchWriteOptions, batch: RunningBatch, planned_at: float, deadline: Deadline
) -> None:
    coordinator = coordinator_client(options.client)
    # Before the look, because nobody could mend what times out behind it.
    written = {(p.topic, p.partition) for _, t in batch.transactions for p in t.partitions}
    coordinator.await_leaders(written, deadline)
    rows = check(batch, None, coordinator, planned_at, datetime.now(UTC), deadline)
    failpoint("decided")
    complete(
        rows,
        config=options.client,
        coordinator=coordinator,
        deadline=deadline,
        awaits_leaders=False,
    )
    failpoint("completed")


def _abort_write(
    options: BatchWriteOptions, messages: Sequence[TaskMessage], sink_partitions: int
) -> None:
    log = None
    if options.transaction_log is not None:
        log = transaction_log(options.transaction_log, options.query_id)
    attempt = Attempt(
        query_id=options.query_id,
        batch_id=options.version,
        messages=messages,
        sink_partitions=sink_partitions,
    )
    end_attempt(attempt, options, log, running=lambda: _written_batch(messages, sink_partitions))
