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
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

from spark_eos.errors import OptionError
from spark_eos.job.command import run_query
from spark_eos.job.configuration import Configuration
from spark_eos.job.delta import DELTA_SETTINGS, application
from spark_eos.job.sections import BatchSink, StreamingJob, Texts
from spark_eos.job.views import first_line, select
from spark_eos.sink.columns import check_columns


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
    try:
        outbox = spark.readStream.format("delta").options(**job.table_options).load(job.table)
    except PySparkException as error:
        raise configuration.error("table", text=first_line(error)) from None
    records(outbox, configuration)  # so that a wrong one is told before the start
    return (
        outbox.writeStream.queryName(job.name)
        .foreachBatch(lambda batch, batch_id: write_batch(batch, batch_id, configuration))
        .option("checkpointLocation", job.checkpoint)
        .trigger(**job.trigger.arguments())
    )


def records(outbox: DataFrame, configuration: Configuration[OutboxToKafka]) -> DataFrame:
    """The rows to write."""
    job = configuration.job
    outbox.createOrReplaceTempView("outbox")
    rows = select(outbox.sparkSession, configuration, "transform", query=job.transform)
    missing = set(job.order_by) - set(rows.columns)
    if missing:
        text = f"the transform gives no column {', '.join(sorted(missing))}"
        raise configuration.error("order_by", text=text)
    options = {name.lower(): value for name, value in job.sink.options.items()}
    try:
        check_columns(rows.schema, options.get("topic"))
    except OptionError as error:
        raise configuration.error("transform", text=str(error)) from None
    return rows


def write_batch(
    outbox: DataFrame, batch_id: int, configuration: Configuration[OutboxToKafka]
) -> None:
    """One micro-batch. Rows of a key are in one task, which sends them in their order."""
    job = configuration.job
    rows = records(outbox, configuration)
    if "key" in rows.columns:
        rows = rows.repartition("key").sortWithinPartitions(*job.order_by)
    else:
        rows = rows.coalesce(1).sortWithinPartitions(*job.order_by)
    (
        rows.write.format("txnkafka")
        .mode("append")
        .options(**job.sink.options)
        .option("txnAppId", application(job.name, job.checkpoint))
        .option("txnVersion", batch_id)
        .save()
    )


if __name__ == "__main__":
    sys.exit(run_query(__doc__, OutboxToKafka, query, DELTA_SETTINGS))
