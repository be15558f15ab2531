"""Topics into a Delta table, each record once.

A Kafka transaction cannot span a table. So each commit of the table names its micro-batch by
application and version, and a batch that runs again after a crash is skipped. The transform runs on
each micro-batch separately, over the view `source`. With `merge` the newest row of a key in a batch
replaces the row in the table. Rows that do not parse go to another table. See
conf/embedded/kafka_to_delta.yaml.
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
    """Of the rows with equal values in `key`, the last by `order_by` stays."""

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
    """The query, ready to start."""
    records = read(spark, configuration, "source")
    transformed(records, configuration)  # reports a wrong transform before the start
    return for_each_batch(records, configuration, MicroBatches())


def transformed(records: DataFrame, configuration: Configuration[KafkaToDelta]) -> DataFrame:
    """The rows for the table."""
    job = configuration.job
    good(records, job.source).createOrReplaceTempView("source")
    columns = [*job.merge.key, *job.merge.order_by] if job.merge is not None else []
    return select(records.sparkSession, configuration, job.transform, *columns, needs="merge")


class MicroBatches:
    """The writes of each micro-batch of one run."""

    def __init__(self) -> None:
        self._appends: DeltaAppends | None = None  # a new checkpoint has no id before the start

    def __call__(
        self, records: DataFrame, batch_id: int, configuration: Configuration[KafkaToDelta]
    ) -> None:
        """Commit to each table, unless the table has the micro-batch already."""
        job = configuration.job
        if self._appends is None:
            self._appends = DeltaAppends(application(job.name, job.checkpoint), job.checkpoint)
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
    """Replace rows by newer ones. A repeated merge changes nothing."""
    from delta.tables import DeltaTable

    order = Window.partitionBy(*how.key).orderBy(*[F.col(c).desc() for c in how.order_by])
    ranked = rows.withColumn("__rank", F.row_number().over(order))
    newest = ranked.where("__rank = 1").drop("__rank")
    created = DeltaTable.createIfNotExists(rows.sparkSession).location(table)
    target = created.addColumns(newest.schema).execute()
    same = " AND ".join(f"old.`{column}` <=> new.`{column}`" for column in how.key)
    merged = target.alias("old").merge(newest.alias("new"), same)
    merged.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()


if __name__ == "__main__":
    sys.exit(run_query(__doc__, KafkaToDelta, query, DELTA_SETTINGS))
