"""Driver. The end of a job's query: rows to topics, or each micro-batch to a function."""

from collections.abc import Callable, Sequence
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 (Spark's own name for it)
from pyspark.sql.streaming.readwriter import DataStreamWriter

from spark_eos._sink.columns import check_columns
from spark_eos.job.configuration import Configuration


def check_records(rows: DataFrame, configuration: Configuration[Any], *, blame: str) -> None:
    """Report rows that cannot become records as a mistake at `blame` in the file."""
    with configuration.blame(blame):
        check_columns(rows.schema, _sink_options(configuration).get("topic"))


def write(
    rows: DataFrame,
    letters: Sequence[DataFrame],
    configuration: Configuration[Any],
    *,
    blame: str,
    output_mode: str = "append",
) -> DataStreamWriter:
    """A query, ready to start. `letters` go to the dead-letter topic."""
    check_records(rows, configuration, blame=blame)
    job, options = configuration.job, _sink_options(configuration)
    if letters:
        # The option would send dead letters to the same topic, so the topic becomes a column.
        topic = options.pop("topic", None)
        rows = _with_dead_letters(rows, topic, letters, job.dead_letter.topic)
    writer = rows.writeStream.format("txnkafka").queryName(job.name)
    return _with_trigger(writer.outputMode(output_mode).options(**options), configuration)


def for_each_batch(
    frame: DataFrame,
    configuration: Configuration[Any],
    write_batch: Callable[[DataFrame, int, Configuration[Any]], None],
) -> DataStreamWriter:
    """A query, ready to start, that passes each micro-batch to `write_batch`."""
    job = configuration.job
    writer = frame.writeStream.queryName(job.name).option("checkpointLocation", job.checkpoint)
    writer = writer.foreachBatch(lambda rows, number: write_batch(rows, number, configuration))
    return _with_trigger(writer, configuration)


def write_once(
    rows: DataFrame, configuration: Configuration[Any], *, application: str, version: int
) -> None:
    """A batch write that happens once for each version of an application."""
    writer = rows.write.format("txnkafka").mode("append").options(**configuration.job.sink.options)
    writer.option("txnAppId", application).option("txnVersion", version).save()


def _with_trigger(writer: DataStreamWriter, configuration: Configuration[Any]) -> DataStreamWriter:
    arguments = configuration.job.trigger.arguments()
    with configuration.blame("trigger", *arguments):
        return writer.trigger(**arguments)


def _sink_options(configuration: Configuration[Any]) -> dict[str, str]:
    return {name.lower(): value for name, value in configuration.job.sink.options.items()}


def _with_dead_letters(
    rows: DataFrame, topic: str | None, letters: Sequence[DataFrame], dead_letter_topic: str
) -> DataFrame:
    """Good rows and dead letters in one frame, each with its topic. `topic` is for good rows."""
    for name in ("key", "value"):
        if name in rows.columns:
            rows = rows.withColumn(name, F.col(name).cast("binary"))
    if topic is not None:
        rows = rows.withColumn("topic", F.lit(topic))
    for letter in letters:
        dead = letter.withColumn("topic", F.lit(dead_letter_topic))
        rows = rows.unionByName(dead, allowMissingColumns=True)
    return rows
