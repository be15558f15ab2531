"""Commit worker. The driver's part of a batch: offsets, decide, complete (steps 4 to 6)."""

from collections.abc import Sequence
from dataclasses import replace

from spark_eos.failpoints import failpoint
from spark_eos.log import TransactionLog
from spark_eos.options import SinkOptions, WriteOptions
from spark_eos.protocol.deadline import Deadline
from spark_eos.protocol.decision import RunningBatch
from spark_eos.recovery.checkpoint import Checkpoint
from spark_eos.sink.complete import complete
from spark_eos.sink.connections import coordinator_client, transaction_log
from spark_eos.sink.decide import decide, is_visible_already
from spark_eos.sink.message import TaskMessage, running_batch, same_batch
from spark_eos.sink.offsets import prepare_offsets


def commit_batch(options: SinkOptions, messages: Sequence[TaskMessage], batch_id: int) -> None:
    """Return when every row of the batch is visible; raise when the batch has to run again."""
    deadline = Deadline.after_ms(options.api_timeout_ms)
    tail = same_batch(messages, batch_id)
    input_digest = Checkpoint(options.checkpoint_location).input_digest(batch_id)
    batch = running_batch(messages, input_digest, len(messages))
    log = transaction_log(options.transaction_log, batch.query_id)
    if is_visible_already(batch, tail, log):
        return
    if tail.moves_offsets(batch_id):
        offsets = prepare_offsets(options, batch.query_id, batch_id, deadline)
        batch = replace(batch, offsets=offsets)
    decide_and_complete(batch, options, log, messages[0].planned_at, deadline)
    log.maintain()


def decide_and_complete(
    batch: RunningBatch,
    options: WriteOptions,
    log: TransactionLog,
    planned_at: float,
    deadline: Deadline,
) -> None:
    """Steps 5 and 6, of a micro-batch and of a batch write alike."""
    coordinator = coordinator_client(options.client)
    decided = decide(
        batch, log=log, coordinator=coordinator, planned_at=planned_at, deadline=deadline
    )
    failpoint("decided")
    complete(decided, config=options.client, coordinator=coordinator, deadline=deadline)
    failpoint("completed")
