"""The face of a batch write: what Spark calls, in three processes that share no memory.

All or nothing over all partitions, by the steps of a micro-batch: write, prepare, decide, complete.
With txnAppId and txnVersion the write is a batch of an application that the log remembers: what
is logged is completed and not written again. Without a log the transactions are ended as soon as
each was looked at: a driver that dies between the first and the last EndTxn leaves a part.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from spark_eos._options import BatchWriteOptions
from spark_eos._protocol.transactions.replay import QueryTail
from spark_eos._sink.message import TaskMessage
from spark_eos._sink.task.context import Task, current_partition
from spark_eos._sink.writer import task_messages

if TYPE_CHECKING:
    import pyarrow as pa


class BatchWriter(DataSourceArrowWriter):
    """`df.write`: made in the planner worker, then sent to the tasks and to the commit worker."""

    def __init__(
        self, options: BatchWriteOptions, tail: QueryTail, run_id: str, planned_at: float
    ) -> None:
        self._options = options
        self._tail = tail
        self._run_id = run_id
        self._planned_at = planned_at

    def write(self, iterator: "Iterator[pa.RecordBatch]") -> WriterCommitMessage:
        """Task worker: steps 2 and 3."""
        from spark_eos._session import session_of
        from spark_eos._sink.task.write import write_partition

        task = Task(
            query_id=self._options.query_id,
            run_id=self._run_id,
            batch_id=self._options.version,
            partition=current_partition(),
        )
        return TaskMessage(
            task=task,
            result=write_partition(session_of(self._options), task, self._tail, iterator),
            tail=self._tail,
            planned_at=self._planned_at,
        )

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Commit worker: steps 5 and 6."""
        from spark_eos._session import session_of
        from spark_eos._sink.driver.commit import commit

        sent = task_messages(messages)
        if sent:
            commit(session_of(self._options), sent, self._options.version)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Commit worker: after a failure."""
        from spark_eos._session import session_of
        from spark_eos._sink.driver.abort import abort, not_raising

        with not_raising(f"write {self._options.query_id}"):
            sent, version = task_messages(messages), self._options.version
            abort(session_of(self._options), sent, version, len(messages))
