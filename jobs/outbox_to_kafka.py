"""The rows of an outbox table to topics, each once, and in order within a key.

A database and Kafka cannot commit together. The way that works: the application writes what is to
be told into a table of the same database, in its own transaction, and this job writes the rows of
that table to Kafka. Each micro-batch is one idempotent batch write: all or nothing, and a batch
that runs again after a crash writes nothing. The transform selects the records from the view
`outbox`; it must also give the columns of `order_by`. See conf/embedded/outbox_to_kafka.yaml.
"""

import sys
from typing import Annotated

from pydantic import Field
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

from spark_eos.job.command import run_query
from spark_eos.job.configuration import Configuration
from spark_eos.job.delta import DELTA_SETTINGS, application
from spark_eos.job.sections import BatchSink, StreamingJob, Texts
from spark_eos.job.views import select
from spark_eos.job.write import check_records, for_each_batch, write_once


class OutboxToKafka(StreamingJob):
    """The file of this job."""

    table: Annotated[str, Field(min_length=1)]
    table_options: Texts = Field(default_factory=dict)
    transform: Annotated[str, Field(min_length=1)]
    order_by: Annotated[list[str], Field(min_length=1)]
    sink: BatchSink
    checkpoint: Annotated[str, Field(min_length=1)]


def query(spark: SparkSession, configuration: Configuration[OutboxToKafka]) -> DataStreamWriter:
    """The query, ready to be started."""
    job = configuration.job
    with configuration.blame("table"):
        outbox = spark.readStream.format("delta").options(**job.table_options).load(job.table)
    records(outbox, configuration)  # so that a wrong one is told before the start
    return for_each_batch(outbox, configuration, write_batch)


def records(outbox: DataFrame, configuration: Configuration[OutboxToKafka]) -> DataFrame:
    """The rows to write."""
    job = configuration.job
    outbox.createOrReplaceTempView("outbox")
    spark = outbox.sparkSession
    rows = select(spark, configuration, job.transform, *job.order_by, needs="order_by")
    check_records(rows, configuration, blame="transform")
    return rows


def write_batch(
    outbox: DataFrame, batch_id: int, configuration: Configuration[OutboxToKafka]
) -> None:
    """One micro-batch. Rows of a key are in one task, which sends them in their order."""
    job = configuration.job
    rows = records(outbox, configuration)
    rows = rows.repartition("key") if "key" in rows.columns else rows.coalesce(1)
    write_once(
        rows.sortWithinPartitions(*job.order_by),
        configuration,
        application=application(job.name, job.checkpoint),
        version=batch_id,
    )


if __name__ == "__main__":
    sys.exit(run_query(__doc__, OutboxToKafka, query, DELTA_SETTINGS))
