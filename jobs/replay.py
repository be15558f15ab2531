"""Micro-batches of a query, read from its topic and written to another topic, each once.

The query's transaction log names the records of each micro-batch, so no others are read. Each
micro-batch is one idempotent write. So a stopped or killed replay continues at its next start, also
with a longer range. A job with another name writes its whole range again. See
conf/embedded/replay.yaml.
"""

import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Annotated

from pydantic import Field, model_validator
from pyspark.sql import DataFrame, SparkSession

from spark_eos.job.command import run_batch
from spark_eos.job.configuration import Configuration
from spark_eos.job.replay import check_micro_batches, has_written
from spark_eos.job.sections import BatchSink, CheckedSnapshotOptions, Job, Section
from spark_eos.job.views import select
from spark_eos.job.write import check_records, write_once


class Batches(Section):
    """The micro-batches, both ends included."""

    first: Annotated[int, Field(ge=0)]
    last: Annotated[int, Field(ge=0)]

    @model_validator(mode="after")
    def _in_order(self) -> "Batches":
        if self.first > self.last:
            raise ValueError("first is greater than last")
        return self


class SnapshotSource(Section):
    """The query's topic and transaction log."""

    options: CheckedSnapshotOptions  # type: ignore[valid-type]


class Replay(Job):
    """The file of this job."""

    source: SnapshotSource
    batches: Batches
    transform: str = "SELECT key, value, headers, timestamp FROM source"
    sink: BatchSink


def steps(
    spark: SparkSession, configuration: Configuration[Replay]
) -> Iterator[Callable[[], None]]:
    """A step for each micro-batch, in order."""
    job = configuration.job
    # Reports a wrong transform or a missing micro-batch before the start.
    records(spark, configuration, job.batches.first)
    check_micro_batches(reading(job, job.batches.first, job.batches.last))
    name = application(job)
    return (
        partial(replay, spark, configuration, name, batch_id)
        for batch_id in range(job.batches.first, job.batches.last + 1)
    )


def reading(job: Replay, first: int, last: int) -> dict[str, str]:
    """The options for a read of these micro-batches."""
    return {
        **job.source.options,
        "includeHeaders": "true",
        "isolation.level": "snapshot",
        "startingBatch": str(first),
        "endingBatch": str(last),
    }


def records(spark: SparkSession, configuration: Configuration[Replay], batch_id: int) -> DataFrame:
    """The rows of a micro-batch."""
    job = configuration.job
    options = reading(job, batch_id, batch_id)
    spark.read.format("txnkafka").options(**options).load().createOrReplaceTempView("source")
    rows = select(spark, configuration, job.transform)
    check_records(rows, configuration, blame="transform")
    return rows


def application(job: Replay) -> str:
    """The txnAppId: the job's name, so that an edited range is not written twice.

    Release 0.1.0 added the range to the name. A replay that it began keeps that name.
    """
    older = f"{job.name}:{job.batches.first}-{job.batches.last}"
    return older if has_written(job.sink.options, older) else job.name


def replay(
    spark: SparkSession, configuration: Configuration[Replay], name: str, batch_id: int
) -> None:
    """Write one micro-batch."""
    rows = records(spark, configuration, batch_id)
    write_once(rows, configuration, application=name, version=batch_id)


if __name__ == "__main__":
    sys.exit(run_batch(__doc__, Replay, steps))
