"""Task worker. What this task is. No other file reads Spark's TaskContext."""

from dataclasses import dataclass

from pyspark import TaskContext

from spark_eos.errors import SparkEosError


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One attempt at one partition of one batch."""

    query_id: str
    run_id: str
    batch_id: int
    partition: int


def current_task() -> Task:
    """The task that this Python worker runs. Spark sets the ids as local properties of the job."""
    context = _context()
    query_id = context.getLocalProperty("sql.streaming.queryId")
    run_id = context.getLocalProperty("spark.jobGroup.id")
    batch_id = context.getLocalProperty("streaming.sql.batchId")
    if query_id is None or run_id is None or batch_id is None:
        raise SparkEosError("the sink's write was called outside of a streaming query")
    return Task(
        query_id=query_id, run_id=run_id, batch_id=int(batch_id), partition=context.partitionId()
    )


def current_partition() -> int:
    """The partition that this Python worker writes."""
    return _context().partitionId()


def _context() -> TaskContext:
    context = TaskContext.get()
    if context is None:
        # No default partition is safe: each number names the transactional id of another task.
        raise SparkEosError(
            "the sink's write was called outside of a Spark task, so it has no partition and no"
            " transactional id. Write with df.write or df.writeStream"
        )
    return context
