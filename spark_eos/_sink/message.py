"""Task, planner and commit worker. The commit message: what one task did."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pyspark.sql.datasource import WriterCommitMessage

from spark_eos._protocol.transactions.batch import RecoveredQuery, RunningBatch, TaskResult
from spark_eos._session import Session
from spark_eos._sink.task.context import Task
from spark_eos.errors import FencedError, SparkEosError

NO_INPUT_DIGEST: Final = ""  # a batch write has no offsets to compare


@dataclass(frozen=True)
class TaskMessage(WriterCommitMessage):
    """The task, its result, and the planner's view of the log."""

    task: Task
    result: TaskResult
    recovered: RecoveredQuery


def same_batch(messages: Sequence[TaskMessage], batch_id: int) -> RecoveredQuery:
    """The planner's view. Raises unless the messages are one complete batch of one run."""
    first = messages[0]
    for number, message in enumerate(messages):
        if message.task.batch_id != batch_id or message.task.partition != number:
            raise SparkEosError(
                "message {number} of batch {batch_id} comes from {task}",
                number=number,
                batch_id=batch_id,
                task=f"partition {message.task.partition} of batch {message.task.batch_id}",
            )
        if message.task.run_id != first.task.run_id or message.recovered != first.recovered:
            raise FencedError(
                "batch {batch_id} of query {query_id} has tasks of two runs",
                batch_id=batch_id,
                query_id=first.task.query_id,
            )
    return first.recovered


def running_batch(
    session: Session, messages: Sequence[TaskMessage], batch_id: int, sink_partitions: int
) -> RunningBatch:
    """The batch of these messages. For an abort, some messages may be missing."""
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
