"""Topics into a Delta table, each record once.

A Kafka transaction cannot span a database. The way that works: the table itself remembers which
micro-batches it has, by (application, version), in the commit that brings their rows; a batch that
runs again after a crash is seen and left out. The transform runs on each micro-batch by itself,
over the view `source`. With `merge` rows replace those with the same key, the newest of a batch.
Rows that do not parse go to a table of their own. See conf/embedded/kafka_to_delta.yaml.
"""

import sys
from typing import Annotated

from pydantic import Field, model_validator
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (Spark's own name for it)
from pyspark.sql.streaming.readwriter import DataStreamWriter
from pyspark.sql.window import Window

from spark_eos.job.command import run_query
from spark_eos.job.configuration import Configuration
from spark_eos.job.delta import DELTA_SETTINGS, application
from spark_eos.job.sections import Section, Source, StreamingJob
from spark_eos.job.views import dead, good, read, select

DEAD_LETTERS = "dead_letter_table"


class Merge(Section):
    """Rows with the same values in `key` replace each other; the last by `order_by` stays."""

    key: Annotated[list[str], Field(min_length=1)]
    order_by: Annotated[list[str], Field(min_length=1)]


class KafkaToDelta(StreamingJob):
    """The file of this job."""

    source: Source
    transform: Annotated[str, Field(min_length=1)]
    table: Annotated[str, Field(min_length=1)]
    merge: Merge | None = None
    dead_letter_table: str | None = None
    checkpoint: Annotated[str, Field(min_length=1)]

    @model_validator(mode="after")
    def _dead_letters_where_rows_are_parsed(self) -> "KafkaToDelta":
        if (self.source.parse is None) != (self.dead_letter_table is None):
            raise ValueError("parse and dead_letter_table belong together: give both or none")
        return self


def query(spark: SparkSession, configuration: Configuration[KafkaToDelta]) -> DataStreamWriter:
    """The query, ready to be started."""
    job = configuration.job
    records = read(spark, configuration, "source")
    transformed(records, configuration)  # so that a wrong one is told before the start
    return (
        records.writeStream.queryName(job.name)
        .foreachBatch(lambda batch, batch_id: write_batch(batch, batch_id, configuration))
        .option("checkpointLocation", job.checkpoint)
        .trigger(**job.trigger.arguments())
    )


def transformed(records: DataFrame, configuration: Configuration[KafkaToDelta]) -> DataFrame:
    """The rows for the table."""
    job = configuration.job
    good(records, job.source).createOrReplaceTempView("source")
    rows = select(records.sparkSession, configuration, "transform", query=job.transform)
    missing = {*job.merge.key, *job.merge.order_by} - {*rows.columns} if job.merge else set()
    if missing:
        text = f"the transform gives no column {', '.join(sorted(missing))}"
        raise configuration.error("merge", text=text)
    return rows


def write_batch(
    records: DataFrame, batch_id: int, configuration: Configuration[KafkaToDelta]
) -> None:
    """One micro-batch: a commit of each table, each of which knows whether it has it already."""
    job = configuration.job
    records.persist()
    try:
        rows = transformed(records, configuration)
        version = {
            "txnAppId": application(job.name, job.checkpoint),
            "txnVersion": str(batch_id),
        }
        if job.dead_letter_table is not None:
            letters = dead(records, job.name).drop("topic")
            letters.write.format("delta").mode("append").options(**version).save(
                job.dead_letter_table
            )
        if job.merge is None:
            rows.write.format("delta").mode("append").options(**version).save(job.table)
        else:
            merge(rows, job.table, job.merge)
    finally:
        records.unpersist()


def merge(rows: DataFrame, table: str, how: Merge) -> None:
    """Replace rows by their newer ones. To do it again changes nothing."""
    from delta.tables import DeltaTable

    order = Window.partitionBy(*how.key).orderBy(*[F.col(c).desc() for c in how.order_by])
    newest = rows.withColumn("__rank", F.row_number().over(order)).where("__rank = 1")
    newest = newest.drop("__rank")
    target = (
        DeltaTable.createIfNotExists(rows.sparkSession)
        .location(table)
        .addColumns(newest.schema)
        .execute()
    )
    same = " AND ".join(f"old.`{column}` <=> new.`{column}`" for column in how.key)
    (
        target.alias("old")
        .merge(newest.alias("new"), same)
        .whenMatchedUpdateAll()
        .whenNotMatchedInsertAll()
        .execute()
    )


if __name__ == "__main__":
    sys.exit(run_query(__doc__, KafkaToDelta, query, DELTA_SETTINGS))
