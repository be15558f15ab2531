"""Counts by key and window of event time, exactly once from the input topic to the output topic.

Each output record is `{"key", "start", "end", "count"}`, keyed by the key. The output mode `append`
writes a window once, after the watermark has passed its end. The mode `update` writes a window each
time that it changes. See conf/embedded/windowed_counts.yaml.
"""

import sys
from typing import Annotated, Literal

from pydantic import Field, model_validator
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (Spark's own name for it)
from pyspark.sql.streaming.readwriter import DataStreamWriter

from spark_eos.job.command import run_query
from spark_eos.job.configuration import Configuration
from spark_eos.job.sections import DeadLetter, Sink, Source, StreamingJob, check_dead_letters
from spark_eos.job.views import dead, good, read
from spark_eos.job.write import write


class WindowedCounts(StreamingJob):
    """The file of this job."""

    source: Source
    event_time: str = "timestamp"
    key: str = "string(key)"
    window: Annotated[str, Field(min_length=1)]
    slide: str | None = None
    watermark: Annotated[str, Field(min_length=1)]
    output_mode: Literal["append", "update"] = "append"
    dead_letter: DeadLetter | None = None
    sink: Sink

    @model_validator(mode="after")
    def _dead_letters_where_rows_are_parsed(self) -> "WindowedCounts":
        check_dead_letters([self.source], self.dead_letter, "dead_letter")
        return self


def query(spark: SparkSession, configuration: Configuration[WindowedCounts]) -> DataStreamWriter:
    """The query, ready to start."""
    job = configuration.job
    frame = read(spark, configuration, "source")
    letters = [dead(frame)] if job.source.parse is not None else []
    events = good(frame, job.source)
    for place, column in (("event_time", "event_time"), ("key", "event_key")):
        with configuration.blame(place):
            events = events.withColumn(column, F.expr(getattr(job, place)))
    with configuration.blame("window"):
        rows = counts(events, job)
    return write(rows, letters, configuration, blame="key", output_mode=job.output_mode)


def counts(events: DataFrame, job: WindowedCounts) -> DataFrame:
    """The counts as records. A batch frame gives the same as a stream that has read all."""
    window = F.window("event_time", job.window, job.slide).alias("window")
    late = events.withWatermark("event_time", job.watermark)
    counted = late.groupBy(window, "event_key").count()
    columns = {"event_key": "key", "window.start": "start", "window.end": "end", "count": "count"}
    value = F.to_json(F.struct(*(F.col(column).alias(name) for column, name in columns.items())))
    return counted.select(F.col("event_key").cast("string").alias("key"), value.alias("value"))


if __name__ == "__main__":
    sys.exit(run_query(__doc__, WindowedCounts, query))
