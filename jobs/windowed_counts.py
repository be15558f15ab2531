"""Counts by key and window of event time, exactly once from the input topic to the output topic.

Each record of the output is `{"key", "start", "end", "count"}`, keyed by the key. With the output
mode `append` a window is written once, when the watermark has passed its end; with `update` again
each time that it changes. See conf/embedded/windowed_counts.yaml.
"""

import sys
from typing import Annotated, Literal

from pydantic import Field
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (Spark's own name for it)
from pyspark.sql.streaming.readwriter import DataStreamWriter

from spark_eos.job.command import run_query
from spark_eos.job.configuration import Configuration
from spark_eos.job.sections import DeadLetter, Sink, Source, StreamingJob
from spark_eos.job.views import dead, first_line, good, read
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


def query(spark: SparkSession, configuration: Configuration[WindowedCounts]) -> DataStreamWriter:
    """The query, ready to be started."""
    job = configuration.job
    frame = read(spark, configuration, "source")
    letters: list[DataFrame] = []
    if job.source.parse is not None and job.dead_letter is not None:
        letters.append(dead(frame, job.dead_letter.topic))
    events = good(frame, job.source)
    for place, column in (("event_time", "event_time"), ("key", "event_key")):
        expression = F.expr(getattr(job, place))
        try:
            events = events.withColumn(column, expression)
        except PySparkException as error:
            raise configuration.error(place, text=first_line(error)) from None
    try:
        rows = counts(events, job)
    except PySparkException as error:
        raise configuration.error("window", text=first_line(error)) from None
    return write(rows, letters, configuration, blame="key", output_mode=job.output_mode)


def counts(events: DataFrame, job: WindowedCounts) -> DataFrame:
    """The counts as records. A batch frame gives what a stream gives when it has seen all."""
    window = F.window("event_time", job.window, job.slide)
    counted = (
        events.withWatermark("event_time", job.watermark)
        .groupBy(window.alias("window"), "event_key")
        .count()
    )
    value = F.to_json(
        F.struct(
            F.col("event_key").alias("key"),
            F.col("window.start").alias("start"),
            F.col("window.end").alias("end"),
            F.col("count"),
        )
    )
    return counted.select(F.col("event_key").cast("string").alias("key"), value.alias("value"))


if __name__ == "__main__":
    sys.exit(run_query(__doc__, WindowedCounts, query))
