"""Commit worker. A batch failed or the query was stopped: end what is open, undo nothing decided.

The log is asked first. If the batch is decided (the commit failed behind the decision) it is
completed. Else the transactions that the messages name are aborted. A partition without a message
may still have a task running, because Spark calls `abort` before killed tasks have ended: its id
is fenced, and watched until Spark must have ended the task.
"""

import logging
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from spark_eos.kafka.client_config import ClientConfig
from spark_eos.kafka.coordinator import CoordinatorClient
from spark_eos.log import TransactionLog
from spark_eos.options import SinkOptions, WriteOptions
from spark_eos.protocol.deadline import Deadline
from spark_eos.protocol.decision import RunningBatch, abort_rows
from spark_eos.protocol.outcome import Outcome
from spark_eos.protocol.state import TransactionState
from spark_eos.protocol.transaction import ProducerIdentity
from spark_eos.protocol.transactional_id import TransactionalId
from spark_eos.recovery.checkpoint import Checkpoint
from spark_eos.sink.complete import complete
from spark_eos.sink.connections import coordinator_client, transaction_log
from spark_eos.sink.fence import fence_open, fence_running
from spark_eos.sink.message import TaskMessage, running_batch

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """A batch that failed. `messages` are those of its tasks that ended well."""

    query_id: str
    batch_id: int
    messages: Sequence[TaskMessage]
    sink_partitions: int


def abort_batch(
    options: SinkOptions, messages: Sequence[TaskMessage], batch_id: int, sink_partitions: int
) -> None:
    """End whatever is open of a micro-batch that failed.

    Does not raise: Spark would show "Writing job failed" instead of the error that the batch failed
    with. What could not be ended here is ended by the next start or by its time-out.
    """
    try:
        _abort_batch(options, messages, batch_id, sink_partitions)
    except Exception:
        _LOG.exception("batch %d could not be aborted whole", batch_id)


def _abort_batch(
    options: SinkOptions, messages: Sequence[TaskMessage], batch_id: int, sink_partitions: int
) -> None:
    checkpoint = Checkpoint(options.checkpoint_location)
    query_id = checkpoint.query_id()
    offsets_id = TransactionalId(
        prefix=options.transactional_id_prefix, query_id=query_id, partition=None
    )
    end_attempt(
        Attempt(
            query_id=query_id,
            batch_id=batch_id,
            messages=messages,
            sink_partitions=sink_partitions,
        ),
        options,
        transaction_log(options.transaction_log, query_id),
        running=lambda: running_batch(messages, checkpoint.input_digest(batch_id), sink_partitions),
        offsets_id=str(offsets_id) if options.group_id is not None else None,
    )


def end_attempt(
    attempt: Attempt,
    options: WriteOptions,
    log: TransactionLog | None,
    *,
    running: Callable[[], RunningBatch],
    offsets_id: str | None = None,
) -> None:
    """Complete what is decided, end what is open, and tell the log of it. `running` is the batch
    for the log, and is asked for only when all is ended: it may have to be read.
    """
    query_id, batch_id = attempt.query_id, attempt.batch_id
    deadline = Deadline.after_ms(options.api_timeout_ms)
    coordinator = coordinator_client(options.client)
    began = datetime.now(UTC) if log is None else log.next_timestamp(query_id)
    decided = set() if log is None else _decided_identities(query_id, batch_id, log)
    ended = _abort_prepared(attempt.messages, decided, coordinator, deadline)
    if log is not None:
        if _complete_if_decided(query_id, batch_id, log, coordinator, options.client, deadline):
            return
        if _is_decided(attempt.messages, decided) or _is_overtaken(attempt, log):
            return
    if offsets_id is not None:
        fence_open(offsets_id, coordinator, options.transaction_timeout_ms, deadline)
    _fence_silent(attempt, options, coordinator, deadline)
    # A row moves the log, and the driver that took these ids over would be stopped by it.
    if log is not None and attempt.messages and ended:
        _log_abort(replace(running(), cluster_id=coordinator.cluster_id(deadline)), log, began)


def _is_overtaken(attempt: Attempt, log: TransactionLog) -> bool:
    """Whether another driver has gone on: then what is open under these ids is the other's.

    It has at the latest when the batch is complete. Who begins after that has nothing open: its
    tasks write no row.
    """
    last = log.last_batch(attempt.query_id)
    if last is None or last.batch_id < attempt.batch_id:
        return False
    return last.batch_id > attempt.batch_id or last.is_whole


def _fence_silent(
    attempt: Attempt, options: WriteOptions, coordinator: CoordinatorClient, deadline: Deadline
) -> None:
    """Fence the ids of the partitions without a message, until no task of them can be left."""
    told = {message.task.partition for message in attempt.messages}
    prefix = options.transactional_id_prefix
    fence_running(
        [
            str(TransactionalId(prefix=prefix, query_id=attempt.query_id, partition=partition))
            for partition in range(attempt.sink_partitions)
            if partition not in told
        ],
        coordinator,
        options.transaction_timeout_ms,
        deadline,
    )


def _decided_identities(query_id: str, batch_id: int, log: TransactionLog) -> set[ProducerIdentity]:
    """The transactions with which the log has decided the batch."""
    batch = log.last_batch(query_id) if log.last_batch_id(query_id) == batch_id else None
    return {record.identity for record in batch.records} if batch is not None else set()


def _is_decided(messages: Sequence[TaskMessage], decided: Container[ProducerIdentity]) -> bool:
    """Whether the log has decided this very attempt. Whatever became of it is in the log, and is
    not for `abort` to tell: the answer of a `commit` that ended well may have been lost.
    """
    return any(identity in decided for identity in _named(messages))


def _complete_if_decided(
    query_id: str,
    batch_id: int,
    log: TransactionLog,
    coordinator: CoordinatorClient,
    config: ClientConfig,
    deadline: Deadline,
) -> bool:
    """Whether the batch was decided; then it is complete when this returns."""
    if log.last_batch_id(query_id) != batch_id:
        return False
    batch = log.last_batch(query_id)
    pending = batch.pending if batch is not None else ()
    decided = [record for record in pending if record.state is TransactionState.PREPARE_COMMIT]
    if decided:
        log.sync()
    complete(decided, config=config, coordinator=coordinator, deadline=deadline)
    return bool(decided)


def _abort_prepared(
    messages: Sequence[TaskMessage],
    decided: Container[ProducerIdentity],
    coordinator: CoordinatorClient,
    deadline: Deadline,
) -> bool:
    """Abort what the messages name, but nothing that is decided. Another driver may have decided
    the same batch with transactions of its own: then none of these is. Returns whether each was
    ended here, by its own epoch.

    Whatever the answer: a transaction that is refused here has ended, or its id belongs to a newer
    attempt; one that is unknown is aborted by its id's next user or by its time-out.
    """
    identities = [identity for identity in _named(messages) if identity not in decided]
    if not identities:
        return True
    answers = coordinator.end(identities, committed=False, deadline=deadline)
    return all(answer.outcome is Outcome.DONE for answer in answers.values())


def _named(messages: Sequence[TaskMessage]) -> list[ProducerIdentity]:
    return [m.result.transaction.identity for m in messages if m.result.transaction]


def _log_abort(batch: RunningBatch, log: TransactionLog, began: datetime) -> None:
    """Tell of the abort. It decides nothing, so it comes last: no record means abort."""
    ended = max(log.next_timestamp(batch.query_id), began + timedelta(microseconds=1))
    rows = abort_rows(batch, log.last_batch(batch.query_id), began, ended)
    if rows:
        log.append(batch.query_id, batch.batch_id, rows)
