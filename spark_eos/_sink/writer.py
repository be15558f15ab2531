"""What Spark calls to write, in three processes that share no memory.

The planner worker makes a writer, with what recovery found inside of it. Spark sends the writer to
the task workers, which call `write`. The commit worker calls `commit` or `abort` with the tasks'
messages: of a streaming query on a writer of its own, without what recovery found, and of a batch
query on the planner's.

A batch write is all or nothing over all partitions, by the steps of a micro-batch. With txnAppId
and txnVersion it is a batch of an application that the log remembers.

Each process imports what its own steps need, when they need it: a task worker loads no Delta, a
commit worker no producer, and both start sooner.
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
            raise SparkEosError("a writer that was not planned cannot write")
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
        task = Task(
            query_id=self._options.query_id,
            run_id=self._run_id,
            batch_id=self._options.version,
            partition=current_partition(),
        )
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
    """The messages of the tasks that ended well; a failed task has none."""
    sent: list[TaskMessage] = []
    for message in messages:
        if isinstance(message, TaskMessage):
            sent.append(message)
        elif message is not None:
            raise SparkEosError(f"a message of type {type(message).__name__} is not this sink's")
    return sent
