"""From task to driver: what one task did, inside Spark's commit message."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pyspark.sql.datasource import WriterCommitMessage

from spark_eos._protocol.transactions.batch import RecoveredQuery, RunningBatch, TaskResult
from spark_eos._session import Session
from spark_eos._sink.task.context import Task
from spark_eos.errors import FencedError, SparkEosError

NO_INPUT_DIGEST: Final = ""  # a batch write has no offsets that could be compared


@dataclass(frozen=True)
class TaskMessage(WriterCommitMessage):
    """The task, its result, and what the planner knew when it sent the task out."""

    task: Task
    result: TaskResult
    recovered: RecoveredQuery


def same_batch(messages: Sequence[TaskMessage], batch_id: int) -> RecoveredQuery:
    """The planner's view, after a check that the messages are one whole batch of one run."""
    first = messages[0]
    for number, message in enumerate(messages):
        if message.task.batch_id != batch_id or message.task.partition != number:
            raise SparkEosError(
                f"message {number} of batch {batch_id} comes from partition"
                f" {message.task.partition} of batch {message.task.batch_id}"
            )
        if message.task.run_id != first.task.run_id or message.recovered != first.recovered:
            raise FencedError(
                f"batch {batch_id} of query {first.task.query_id} has tasks of two runs"
            )
    return first.recovered


def running_batch(
    session: Session, messages: Sequence[TaskMessage], batch_id: int, sink_partitions: int
) -> RunningBatch:
    """The batch that the messages tell of; some may be missing where it is to be aborted."""
    task = messages[0].task
    is_streaming = session.is_streaming
    return RunningBatch(
        query_id=task.query_id,
        run_id=task.run_id,
        batch_id=batch_id,
        input_digest=session.checkpoint.input_digest(batch_id) if is_streaming else NO_INPUT_DIGEST,
        sink_partitions=sink_partitions,
        results=tuple(message.result for message in messages),
        is_batch_write=not is_streaming,
    )
