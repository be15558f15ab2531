"""The rows of an outbox table to topics, each once, and in order within a key.

A database and Kafka cannot commit together. So an application writes its messages into an outbox
table of its database, in its own transaction. This job writes the rows of that table to Kafka. Each
micro-batch is one idempotent batch write. The transform selects the records from the view `outbox`.
It must also select the columns of `order_by`. See conf/embedded/outbox_to_kafka.yaml.
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
    """The query, ready to start."""
    job = configuration.job
    with configuration.blame("table"):
        outbox = spark.readStream.format("delta").options(**job.table_options).load(job.table)
    records(outbox, configuration)  # reports a wrong transform before the start
    return for_each_batch(outbox, configuration, write_batch)


def records(outbox: DataFrame, configuration: Configuration[OutboxToKafka]) -> DataFrame:
    """The rows to write."""
    job = configuration.job
    outbox.createOrReplaceTempView("outbox")
    columns = job.order_by
    rows = select(outbox.sparkSession, configuration, job.transform, *columns, needs="order_by")
    check_records(rows, configuration, blame="transform")
    return rows


def write_batch(
    outbox: DataFrame, batch_id: int, configuration: Configuration[OutboxToKafka]
) -> None:
    """Write one micro-batch. One task has all rows of a key, and sends them in order."""
    job = configuration.job
    rows = records(outbox, configuration)
    rows = rows.repartition("key") if "key" in rows.columns else rows.coalesce(1)
    name = application(job.name, job.checkpoint)
    ordered = rows.sortWithinPartitions(*job.order_by)
    write_once(ordered, configuration, application=name, version=batch_id)


if __name__ == "__main__":
    sys.exit(run_query(__doc__, OutboxToKafka, query, DELTA_SETTINGS))
