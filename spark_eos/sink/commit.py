"""Commit worker. The driver's part of a batch: offsets, decide, complete (steps 4 to 6)."""

from collections.abc import Sequence
from dataclasses import replace

from spark_eos.deadline import Deadline
from spark_eos.failpoints import failpoint
from spark_eos.protocol.decision import RunningBatch
from spark_eos.recovery.ownership import Ownership
from spark_eos.session import Session
from spark_eos.sink.complete import complete
from spark_eos.sink.decide import decide, is_visible_already
from spark_eos.sink.message import TaskMessage, running_batch, same_batch
from spark_eos.sink.offsets import prepare_offsets


def commit_batch(session: Session, messages: Sequence[TaskMessage], batch_id: int) -> None:
    """Return when every row of the batch is visible; raise when the batch has to run again."""
    deadline, checkpoint = session.deadline(), session.checkpoint
    tail = same_batch(messages, batch_id)
    batch = running_batch(messages, checkpoint.input_digest(batch_id), len(messages))
    if tail.last_batch_id is not None and batch_id <= tail.last_batch_id:
        older = checkpoint.input_digest_of_version_2(batch_id)
        batch = replace(batch, older_input_digest=older)
    log = session.newest_log()
    if is_visible_already(batch, tail, log):
        return
    if tail.moves_offsets(batch_id) and session.group_id is not None:
        ends = checkpoint.kafka_offsets(batch_id)
        prepared = prepare_offsets(session, session.group_id, ends, deadline)
        batch = replace(batch, offsets=prepared)
    decide_and_complete(session, batch, messages[0].planned_at, deadline)
    log.maintain()


def decide_and_complete(
    session: Session, batch: RunningBatch, planned_at: float, deadline: Deadline
) -> None:
    """Steps 5 and 6, of a micro-batch and of a batch write alike."""
    decision = decide(session, batch, planned_at, deadline)
    failpoint("decided")
    if decision.token is not None and decision.records:
        Ownership(session).move_on(decision.token, deadline)
        failpoint("moved")
    complete(session, decision.records, deadline)
    failpoint("completed")
