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
from spark_eos.job.delta import DELTA_SETTINGS, DeltaAppends, application
from spark_eos.job.sections import Section, Source, StreamingJob, check_dead_letters
from spark_eos.job.views import dead, good, read, select
from spark_eos.job.write import for_each_batch


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
        check_dead_letters([self.source], self.dead_letter_table, "dead_letter_table")
        return self


def query(spark: SparkSession, configuration: Configuration[KafkaToDelta]) -> DataStreamWriter:
    """The query, ready to be started."""
    records = read(spark, configuration, "source")
    transformed(records, configuration)  # so that a wrong one is told before the start
    return for_each_batch(records, configuration, MicroBatches())


def transformed(records: DataFrame, configuration: Configuration[KafkaToDelta]) -> DataFrame:
    """The rows for the table."""
    job = configuration.job
    good(records, job.source).createOrReplaceTempView("source")
    columns = [*job.merge.key, *job.merge.order_by] if job.merge is not None else []
    return select(records.sparkSession, configuration, job.transform, *columns, needs="merge")


class MicroBatches:
    """What one run does with each micro-batch."""

    def __init__(self) -> None:
        self._appends: DeltaAppends | None = None  # a new checkpoint has no id before the start

    def __call__(
        self, records: DataFrame, batch_id: int, configuration: Configuration[KafkaToDelta]
    ) -> None:
        """A commit of each table, each of which knows whether it has the micro-batch already."""
        job = configuration.job
        if self._appends is None:
            name = application(job.name, job.checkpoint)
            self._appends = DeltaAppends(name, job.checkpoint)
        records.persist()
        try:
            rows = transformed(records, configuration)
            if job.dead_letter_table is not None:
                self._appends.append(dead(records), job.dead_letter_table, batch_id)
            if job.merge is None:
                self._appends.append(rows, job.table, batch_id)
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
