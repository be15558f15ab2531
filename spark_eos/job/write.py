"""Driver. The end of a job's query: rows, and dead letters where there are any, to the sink."""

from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.streaming.readwriter import DataStreamWriter

from spark_eos.errors import OptionError
from spark_eos.job.configuration import Configuration
from spark_eos.job.views import with_dead_letters
from spark_eos.sink.columns import check_columns


def write(
    rows: DataFrame,
    letters: list[DataFrame],
    configuration: Configuration[Any],
    *,
    blame: str,
    output_mode: str = "append",
) -> DataStreamWriter:
    """The query, ready to be started. Wrong columns are a mistake at `blame` in the file."""
    job = configuration.job
    options = {name.lower(): value for name, value in job.sink.options.items()}
    try:
        check_columns(rows.schema, options.get("topic"))
    except OptionError as error:
        raise configuration.error(blame, text=str(error)) from None
    if letters:
        # The option would send every row to one topic, so the topic becomes a column.
        rows = with_dead_letters(rows, letters, options.pop("topic", None))
    return (
        rows.writeStream.format("txnkafka")
        .queryName(job.name)
        .outputMode(output_mode)
        .options(**options)
        .trigger(**job.trigger.arguments())
    )
