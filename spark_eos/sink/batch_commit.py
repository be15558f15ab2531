"""Planner and commit worker. The driver's part of a batch write.

The same steps as of a micro-batch, without a checkpoint: the completion is logged at once, because
there may never be a next batch that could carry it.
"""

import logging
from collections.abc import Sequence

from spark_eos.deadline import Deadline
from spark_eos.errors import SparkEosError
from spark_eos.failpoints import failpoint
from spark_eos.log import TransactionLog
from spark_eos.options import BatchWriteOptions
from spark_eos.protocol.decision import completion_rows
from spark_eos.protocol.replay import QueryTail
from spark_eos.recovery.orphans import abort_orphans
from spark_eos.recovery.recover import recover
from spark_eos.sink.abort import Attempt, end_attempt
from spark_eos.sink.cluster import check_cluster
from spark_eos.sink.commit import decide_and_complete
from spark_eos.sink.commit_without_log import commit_without_log
from spark_eos.sink.connections import coordinator_client, ownership, transaction_log
from spark_eos.sink.decide import is_visible_already
from spark_eos.sink.message import TaskMessage, same_batch, written_batch
from spark_eos.sink.version import check_version, check_written_rows

_LOG = logging.getLogger(__name__)


def plan_write(options: BatchWriteOptions) -> QueryTail:
    """Planner worker. What the tasks must know of the log, when an earlier run is completed."""
    deadline = Deadline.after_ms(options.api_timeout_ms)
    check_cluster(options, deadline)
    if options.transaction_log is None:
        return QueryTail(query_id=options.query_id)
    coordinator = coordinator_client(options.client)
    log = transaction_log(options.transaction_log, options.query_id)
    owner = ownership(options, options.query_id, log)
    owner.take_over(deadline)
    tail = recover(
        options.query_id,
        log=log,
        checkpoint=None,
        config=options.client,
        coordinator=coordinator,
        ownership=owner,
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
    if options.transaction_log is None:
        commit_without_log(options, messages, deadline)
        return
    tail = same_batch(messages, options.version)
    batch = written_batch(messages, len(messages))
    log = transaction_log(options.transaction_log, options.query_id)
    if is_visible_already(batch, tail, log):
        check_written_rows(options, batch.results, log)
        return
    owner = ownership(options, options.query_id, log)
    decide_and_complete(batch, options, log, owner, messages[0].planned_at, deadline)
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


def abort_write(
    options: BatchWriteOptions, messages: Sequence[TaskMessage], sink_partitions: int
) -> None:
    """End whatever is open of a write that failed; never what is decided. Does not raise."""
    try:
        _abort_write(options, messages, sink_partitions)
    except Exception:
        _LOG.exception("write %s could not be aborted whole", options.query_id)


def _abort_write(
    options: BatchWriteOptions, messages: Sequence[TaskMessage], sink_partitions: int
) -> None:
    attempt = Attempt(
        query_id=options.query_id,
        batch_id=options.version,
        messages=messages,
        sink_partitions=sink_partitions,
    )
    log = None
    if options.transaction_log is not None:
        log = transaction_log(options.transaction_log, options.query_id)
    elif attempt.may_be_committing:
        return  # it may have sent its first commit request: see commit_without_log
    end_attempt(
        attempt,
        options,
        log,
        None if log is None else ownership(options, options.query_id, log),
        running=lambda: written_batch(messages, sink_partitions),
    )
