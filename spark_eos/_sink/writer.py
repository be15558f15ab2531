"""The face of the sink: what Spark calls, in three processes that share no memory.

The planner worker makes a `StreamWriter` before each batch, with the log's tail inside, and Spark
sends it to the task workers, which call `write`. The commit worker makes one of its own, without
a tail, and calls `commit` or `abort` with the tasks' messages.

Each process imports what its own steps need, when it needs it: a task worker loads no Delta, a
commit worker no producer, and both start the sooner.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage

from spark_eos._options import SinkOptions
from spark_eos._protocol.transactions.replay import QueryTail
from spark_eos._sink.message import TaskMessage
from spark_eos._worker import task_started
from spark_eos.errors import SparkEosError

if TYPE_CHECKING:
    import pyarrow as pa


class StreamWriter(DataSourceStreamArrowWriter):
    """One micro-batch, one decision."""

    def __init__(
        self, options: SinkOptions, tail: QueryTail | None = None, planned_at: float = 0.0
    ) -> None:
        self._options = options
        self._tail = tail
        self._planned_at = planned_at

    def write(self, iterator: "Iterator[pa.RecordBatch]") -> WriterCommitMessage:
        """Task worker: steps 2 and 3."""
        task_started()
        from spark_eos._session import session_of
        from spark_eos._sink.task.context import current_task
        from spark_eos._sink.task.write import write_partition

        if self._tail is None:
            raise SparkEosError("a writer that was not planned cannot write")
        task = current_task()
        session = session_of(self._options, task.query_id)
        return TaskMessage(
            task=task,
            result=write_partition(session, task, self._tail, iterator),
            tail=self._tail,
            planned_at=self._planned_at,
        )

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Commit worker: steps 4 to 6."""
        from spark_eos._session import session_of
        from spark_eos._sink.driver.commit import commit

        sent = task_messages(messages)
        if sent:
            commit(session_of(self._options, sent[0].task.query_id), sent, batchId)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Commit worker: after a failure or a stop."""
        from spark_eos._session import session_of
        from spark_eos._sink.driver.abort import abort, not_raising

        with not_raising(f"batch {batchId}"):
            sent = task_messages(messages)
            abort(session_of(self._options), sent, batchId, len(messages))


def task_messages(messages: list[WriterCommitMessage | None]) -> list[TaskMessage]:
    """The messages of the tasks that ended well; a failed task has none."""
    sent: list[TaskMessage] = []
    for message in messages:
        if isinstance(message, TaskMessage):
            sent.append(message)
        elif message is not None:
            raise SparkEosError(f"a message of type {type(message).__name__} is not this sink's")
    return sent
