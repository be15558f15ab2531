"""The face of the sink: what Spark calls, in three processes that share no memory.

The planner worker makes a `StreamWriter` before each batch, with the log's tail inside, and Spark
sends it to the task workers, which call `write`. The commit worker makes one of its own, without
a tail, and calls `commit` or `abort` with the tasks' messages.

Each process imports what its own steps need, when it needs it: a task worker loads no Delta, a
commit worker no producer, and both start the sooner.
"""

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage

from spark_eos.errors import SparkEosError
from spark_eos.options import SinkOptions
from spark_eos.protocol.replay import QueryTail
from spark_eos.sink.message import TaskMessage
from spark_eos.worker import task_started

if TYPE_CHECKING:
    import pyarrow as pa


class StreamWriter(DataSourceStreamArrowWriter):
    """One micro-batch, one decision."""

    def __init__(self, options: SinkOptions, tail: QueryTail | None = None) -> None:
        self._options = options
        self._tail = tail
        self._planned_at = time.monotonic()

    def write(self, iterator: "Iterator[pa.RecordBatch]") -> WriterCommitMessage:
        """Task worker: steps 2 and 3."""
        task_started()
        from spark_eos.sink.task import current_task
        from spark_eos.sink.write import write_partition

        if self._tail is None:
            raise SparkEosError("a writer that was not planned cannot write")
        task = current_task()
        return TaskMessage(
            task=task,
            result=write_partition(task, self._tail, self._options, iterator),
            tail=self._tail,
            planned_at=self._planned_at,
        )

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Commit worker: steps 5 and 6."""
        from spark_eos.sink.commit import commit_batch

        sent = task_messages(messages)
        if sent:
            commit_batch(self._options, sent, batchId)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Commit worker: after a failure or a stop."""
        from spark_eos.sink.abort import abort_batch

        abort_batch(self._options, task_messages(messages), batchId, len(messages))


def task_messages(messages: list[WriterCommitMessage | None]) -> list[TaskMessage]:
    """The messages of the tasks that ended well; a failed task has none."""
    sent: list[TaskMessage] = []
    for message in messages:
        if isinstance(message, TaskMessage):
            sent.append(message)
        elif message is not None:
            raise SparkEosError(f"a message of type {type(message).__name__} is not this sink's")
    return sent
