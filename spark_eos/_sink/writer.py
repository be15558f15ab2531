"""Every process. What Spark calls to write: steps 2 to 6, and abort.

Spark sends the planner's writer, which holds the result of recovery, to the task workers. In the
commit worker, a batch write has the same writer. A streaming query has a new one without recovery.
Each process imports only what its own steps need, see docs/design/decision.md.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from spark_eos._options import BatchWriteOptions, SinkOptions
from spark_eos._protocol.transactions.batch import RecoveredQuery
from spark_eos._sink.message import TaskMessage
from spark_eos._sink.task.context import Task, current_partition, current_task
from spark_eos._worker import task_started
from spark_eos.errors import SparkEosError

if TYPE_CHECKING:
    import pyarrow as pa

Messages = list[WriterCommitMessage | None]


class StreamWriter(DataSourceStreamArrowWriter):
    """One micro-batch, one decision."""

    def __init__(self, options: SinkOptions, recovered: RecoveredQuery | None = None) -> None:
        self._options = options
        self._recovered = recovered

    def write(self, iterator: "Iterator[pa.RecordBatch]") -> WriterCommitMessage:
        """Task worker: steps 2 and 3."""
        task_started()
        if self._recovered is None:
            raise SparkEosError("a writer that the planner did not make cannot write")
        return _write(self._options, current_task(), self._recovered, iterator)

    def commit(self, messages: Messages, batchId: int) -> None:  # noqa: N803
        """Commit worker: steps 4 to 6."""
        _commit(self._options, messages, batchId)

    def abort(self, messages: Messages, batchId: int) -> None:  # noqa: N803
        """Commit worker: after a failure or a stop."""
        _abort(self._options, messages, batchId)


class BatchWriter(DataSourceArrowWriter):
    """`df.write`."""

    def __init__(self, options: BatchWriteOptions, recovered: RecoveredQuery, run_id: str) -> None:
        self._options = options
        self._recovered = recovered
        self._run_id = run_id

    def write(self, iterator: "Iterator[pa.RecordBatch]") -> WriterCommitMessage:
        """Task worker: steps 2 and 3."""
        query_id, version = self._options.query_id, self._options.version
        partition = current_partition()
        task = Task(query_id=query_id, run_id=self._run_id, batch_id=version, partition=partition)
        return _write(self._options, task, self._recovered, iterator)

    def commit(self, messages: Messages) -> None:
        """Commit worker: steps 5 and 6."""
        _commit(self._options, messages, self._options.version)

    def abort(self, messages: Messages) -> None:
        """Commit worker: after a failure."""
        _abort(self._options, messages, self._options.version)


def _write(
    options: SinkOptions | BatchWriteOptions,
    task: Task,
    recovered: RecoveredQuery,
    iterator: "Iterator[pa.RecordBatch]",
) -> TaskMessage:
    from spark_eos._session import session_of
    from spark_eos._sink.task.write import write_partition

    session = session_of(options, task.query_id)
    result = write_partition(session, task, recovered, iterator)
    return TaskMessage(task=task, result=result, recovered=recovered)


def _commit(options: SinkOptions | BatchWriteOptions, messages: Messages, batch_id: int) -> None:
    from spark_eos._session import session_of
    from spark_eos._sink.driver.commit import commit

    sent = _task_messages(messages)
    if sent:
        commit(session_of(options, sent[0].task.query_id), sent, batch_id)


def _abort(options: SinkOptions | BatchWriteOptions, messages: Messages, batch_id: int) -> None:
    from spark_eos._session import session_of
    from spark_eos._sink.driver.abort import abort, not_raising

    with not_raising(f"batch {batch_id}"):
        sent = _task_messages(messages)
        abort(session_of(options), sent, batch_id, len(messages))


def _task_messages(messages: Messages) -> list[TaskMessage]:
    """The messages of the tasks that succeeded. A failed task has no message."""
    sent: list[TaskMessage] = []
    for message in messages:
        if isinstance(message, TaskMessage):
            sent.append(message)
        elif message is not None:
            raise SparkEosError(
                "a message of type {kind} is not from this sink", kind=type(message).__name__
            )
    return sent
