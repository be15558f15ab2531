"""From task to driver: what one task did, inside Spark's commit message."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from pyspark.sql.datasource import WriterCommitMessage

from spark_eos.errors import FencedError, SparkEosError
from spark_eos.protocol.decision import RunningBatch
from spark_eos.protocol.replay import QueryTail, TaskResult
from spark_eos.sink.task import Task

_NO_INPUT_DIGEST: Final = ""  # a batch write has no offsets that could be compared


@dataclass(frozen=True)
class TaskMessage(WriterCommitMessage):
    """The task, its result, and what the planner knew when it sent the task out."""

    task: Task
    result: TaskResult
    tail: QueryTail
    planned_at: float


def same_batch(messages: Sequence[TaskMessage], batch_id: int) -> QueryTail:
    """The planner's view, after a check that the messages are one whole batch of one run."""
    first = messages[0]
    for number, message in enumerate(messages):
        if message.task.batch_id != batch_id or message.task.partition != number:
            raise SparkEosError(
                f"message {number} of batch {batch_id} comes from partition"
                f" {message.task.partition} of batch {message.task.batch_id}"
            )
        if message.task.run_id != first.task.run_id or message.tail != first.tail:
            raise FencedError(
                f"batch {batch_id} of query {first.task.query_id} has tasks of two runs"
            )
    return first.tail


def running_batch(
    messages: Sequence[TaskMessage], input_digest: str, sink_partitions: int
) -> RunningBatch:
    """The batch that the messages tell of; some may be missing where it is to be aborted."""
    task = messages[0].task
    return RunningBatch(
        query_id=task.query_id,
        run_id=task.run_id,
        batch_id=task.batch_id,
        input_digest=input_digest,
        sink_partitions=sink_partitions,
        results=tuple(message.result for message in messages),
    )


def written_batch(messages: Sequence[TaskMessage], sink_partitions: int) -> RunningBatch:
    """The same for a batch write."""
    batch = running_batch(messages, _NO_INPUT_DIGEST, sink_partitions)
    return replace(batch, is_batch_write=True)
