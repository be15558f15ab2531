"""Task worker. Where this task stands: the only file that reads Spark's TaskContext."""

from dataclasses import dataclass

from pyspark import TaskContext

from spark_eos.errors import SparkEosError


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One attempt at one partition of one micro-batch."""

    query_id: str
    run_id: str
    batch_id: int
    partition: int


def current_task() -> Task:
    """The task that this Python worker runs.

    `write` is given no batch id; Spark sets it as a local property of the job, with the ids of the
    query and of the run.
    """
    context = TaskContext.get()
    if context is None:
        raise SparkEosError("the sink's write was called outside of a Spark task")
    query_id = context.getLocalProperty("sql.streaming.queryId")
    run_id = context.getLocalProperty("spark.jobGroup.id")
    batch_id = context.getLocalProperty("streaming.sql.batchId")
    if query_id is None or run_id is None or batch_id is None:
        raise SparkEosError("the sink's write was called outside of a streaming query")
    return Task(
        query_id=query_id,
        run_id=run_id,
        batch_id=int(batch_id),
        partition=context.partitionId(),
    )
