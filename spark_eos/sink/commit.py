"""Commit worker. The driver's part of a batch: offsets, decide, complete (steps 4 to 6)."""

from collections.abc import Sequence
from dataclasses import replace

from spark_eos.deadline import Deadline
from spark_eos.failpoints import failpoint
from spark_eos.log import TransactionLog
from spark_eos.options import SinkOptions, WriteOptions
from spark_eos.protocol.decision import RunningBatch
from spark_eos.recovery.checkpoint import Checkpoint
from spark_eos.recovery.ownership import Ownership
from spark_eos.sink.complete import complete
from spark_eos.sink.connections import coordinator_client, ownership, transaction_log
from spark_eos.sink.decide import decide, is_visible_already
from spark_eos.sink.message import TaskMessage, running_batch, same_batch
from spark_eos.sink.offsets import prepare_offsets


def commit_batch(options: SinkOptions, messages: Sequence[TaskMessage], batch_id: int) -> None:
    """Return when every row of the batch is visible; raise when the batch has to run again."""
    deadline = Deadline.after_ms(options.api_timeout_ms)
    tail = same_batch(messages, batch_id)
    checkpoint = Checkpoint(options.checkpoint_location)
    batch = running_batch(messages, checkpoint.input_digest(batch_id), len(messages))
    if tail.last_batch_id is not None and batch_id <= tail.last_batch_id:
        older = checkpoint.input_digest_of_version_2(batch_id)
        batch = replace(batch, older_input_digest=older)
    log = transaction_log(options.transaction_log, batch.query_id, options.checkpoint_location)
    if is_visible_already(batch, tail, log):
        return
    if tail.moves_offsets(batch_id):
        offsets = prepare_offsets(options, batch.query_id, batch_id, deadline)
        batch = replace(batch, offsets=offsets)
    owner = ownership(options, batch.query_id, log)
    decide_and_complete(batch, options, log, owner, messages[0].planned_at, deadline)
    log.maintain()


def decide_and_complete(
    batch: RunningBatch,
    options: WriteOptions,
    log: TransactionLog,
    owner: Ownership | None,
    planned_at: float,
    deadline: Deadline,
) -> None:
    """Steps 5 and 6, of a micro-batch and of a batch write alike."""
    coordinator = coordinator_client(options.client)
    decision = decide(
        batch,
        log=log,
        coordinator=coordinator,
        ownership=owner,
        planned_at=planned_at,
        deadline=deadline,
    )
    failpoint("decided")
    if owner is not None and decision.token is not None and decision.records:
        owner.move_on(decision.token, deadline)
        failpoint("moved")
    complete(decision.records, config=options.client, coordinator=coordinator, deadline=deadline)
    failpoint("completed")
