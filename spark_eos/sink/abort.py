"""Commit worker. A batch failed or the query was stopped: end what is open, undo nothing decided.

The log is asked first. If the batch is decided (the commit failed behind the decision) it is
completed. Else the transactions that the messages name are aborted. A partition without a message
may still have a task running, because Spark calls `abort` before killed tasks have ended: its id
is fenced, and watched until Spark must have ended the task.
"""

import logging
import time
from collections.abc import Container, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

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
from spark_eos.sink.message import TaskMessage, running_batch

_LOG = logging.getLogger(__name__)

# Spark kills a Python worker this long after its task was cancelled: spark.python.task.killTimeout.
_KILL_TIMEOUT_MS: Final = 2_000
_WATCH_MS: Final = _KILL_TIMEOUT_MS + 500
_LOOK_EVERY_S: Final = 0.1


def abort_batch(
    options: SinkOptions, messages: Sequence[TaskMessage], batch_id: int, sink_partitions: int
) -> None:
    """End whatever is open of a batch that failed. `messages` are those of its ended tasks.

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
    deadline = Deadline.after_ms(options.api_timeout_ms)
    checkpoint = Checkpoint(options.checkpoint_location)
    query_id = checkpoint.query_id()
    log = transaction_log(options.transaction_log, query_id)
    coordinator = coordinator_client(options.client)
    began = log.next_timestamp(query_id)
    decided = decided_identities(query_id, batch_id, log)
    ended = abort_prepared(messages, decided, coordinator, deadline)
    if complete_if_decided(query_id, batch_id, log, coordinator, options.client, deadline):
        return
    if is_decided(messages, decided):
        return
    batch = None
    if messages:
        batch = running_batch(messages, checkpoint.input_digest(batch_id), sink_partitions)
    last_batch_id = log.last_batch_id(query_id)
    if last_batch_id is not None and last_batch_id > batch_id:
        # Another driver has gone on, and what is open under these ids now is its own.
        return
    if options.group_id is not None:
        offsets_id = TransactionalId(
            prefix=options.transactional_id_prefix, query_id=query_id, partition=None
        )
        _fence_open(str(offsets_id), coordinator, options.transaction_timeout_ms, deadline)
    fence_silent(options, query_id, messages, sink_partitions, coordinator, deadline)
    # A row moves the log, and the driver that took these ids over would be stopped by it.
    if batch is not None and ended:
        log_abort(replace(batch, cluster_id=coordinator.cluster_id(deadline)), log, began)


def fence_silent(
    options: WriteOptions,
    query_id: str,
    messages: Sequence[TaskMessage],
    sink_partitions: int,
    coordinator: CoordinatorClient,
    deadline: Deadline,
) -> None:
    """Fence the ids of the partitions without a message, until no task of them can be left."""
    silent = set(range(sink_partitions)) - {message.task.partition for message in messages}
    prefix = options.transactional_id_prefix
    _fence_running(
        [
            str(TransactionalId(prefix=prefix, query_id=query_id, partition=partition))
            for partition in sorted(silent)
        ],
        coordinator,
        options.transaction_timeout_ms,
        deadline,
    )


def decided_identities(query_id: str, batch_id: int, log: TransactionLog) -> set[ProducerIdentity]:
    """The transactions with which the log has decided the batch."""
    batch = log.last_batch(query_id) if log.last_batch_id(query_id) == batch_id else None
    return {record.identity for record in batch.records} if batch is not None else set()


def is_decided(messages: Sequence[TaskMessage], decided: Container[ProducerIdentity]) -> bool:
    """Whether the log has decided this very attempt. Whatever became of it is in the log, and is
    not for `abort` to tell: the answer of a `commit` that ended well may have been lost.
    """
    return any(identity in decided for identity in _named(messages))


def complete_if_decided(
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


def abort_prepared(
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


def log_abort(batch: RunningBatch, log: TransactionLog, began: datetime) -> None:
    """Tell of the abort. It decides nothing, so it comes last: no record means abort."""
    ended = max(log.next_timestamp(batch.query_id), began + timedelta(microseconds=1))
    rows = abort_rows(batch, log.last_batch(batch.query_id), began, ended)
    if rows:
        log.append(batch.query_id, batch.batch_id, rows)


def _fence_open(
    transactional_id: str, coordinator: CoordinatorClient, timeout_ms: int, deadline: Deadline
) -> None:
    """End the driver's own transaction, which a commit that failed has left. No task has it."""
    found = coordinator.describe([transactional_id], deadline)[transactional_id]
    if found is not None and found.state is TransactionState.ONGOING:
        coordinator.fence([transactional_id], timeout_ms=timeout_ms, deadline=deadline)


def _fence_running(
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
