"""Driver. Sources as views for SQL, and dead letters: rows that do not parse.

A dead letter has the key and the value of its record, with headers for the reason and the origin.
It is a row of the same query, so the batch's decision covers it too. See docs/design/jobs.md.
"""

from typing import Any, Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (Spark's own name for it)

from spark_eos.errors import OptionError
from spark_eos.job.configuration import Configuration
from spark_eos.job.sections import Job, Source

PARSED: Final = "data"
_MALFORMED: Final = "__malformed"
_ERROR: Final = "__error"
_HEADERS: Final = "array<struct<key: string, value: binary>>"


def read(spark: SparkSession, configuration: Configuration[Job], *place: str) -> DataFrame:
    """The parsed records of the source at this place of the file, with the reason of bad ones."""
    section: Any = getattr(configuration.job, place[0])
    source: Source = section[place[1]] if len(place) > 1 else section
    frame = spark.readStream.format("txnkafka").options(**source.options).load()
    if source.parse is not None:
        schema = f"{source.parse.schema_}, {_MALFORMED} STRING"
        options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _MALFORMED}
        parsed = F.from_json(F.col("value").cast("string"), schema, options)
        with configuration.blame(*place, "parse", "schema"):
            frame = frame.withColumn(PARSED, parsed)
        with configuration.blame(*place, "parse", "valid_when"):
            frame = frame.withColumn(_ERROR, _error(source.parse.valid_when))
        frame = frame.withColumn(PARSED, F.col(PARSED).dropFields(_MALFORMED))
    with configuration.blame(*place, "watermark"):
        good(frame, source)  # reports a wrong watermark here, with its line
    return frame


def good(frame: DataFrame, source: Source) -> DataFrame:
    """The rows that parse, with the source's watermark."""
    if source.parse is not None:
        frame = frame.where(F.col(_ERROR).isNull()).drop(_ERROR)
    if source.watermark is not None:
        frame = frame.withWatermark(source.watermark.column, source.watermark.delay)
    return frame


def dead(frame: DataFrame) -> DataFrame:
    """The rows that do not parse, as records: key, value and headers."""
    origin = {"reason": _ERROR, "topic": "topic", "partition": "partition", "offset": "offset"}
    added = [_header(f"__error.{name}", F.col(column)) for name, column in origin.items()]
    headers = F.array(*added).cast(_HEADERS)
    if "headers" in frame.columns:
        headers = F.concat(F.coalesce("headers", F.array().cast(_HEADERS)), headers)
    return frame.where(F.col(_ERROR).isNotNull()).select("key", "value", headers.alias("headers"))


def select(
    spark: SparkSession,
    configuration: Configuration[Any],
    query: str,
    *columns: str,
    needs: str = "",
) -> DataFrame:
    """The result of the transform. It must have the columns, which the file names at `needs`."""
    with configuration.blame("transform"):
        rows = spark.sql(query)
    missing = sorted(set(columns) - set(rows.columns))
    if missing:
        with configuration.blame(needs):
            raise OptionError("the transform gives no column {columns}", columns=", ".join(missing))
    return rows


def _error(valid_when: str) -> Column:
    """Why a row is bad, or null for a good one. A record without a value is not parsed."""
    parsed = F.col(PARSED)
    return (
        F.when(F.col("value").isNull(), F.lit(None).cast("string"))
        .when(parsed.isNull(), F.lit("the value is empty"))
        .when(parsed[_MALFORMED].isNotNull(), F.lit("the value is no JSON of the schema"))
        .when(
            ~F.coalesce(F.expr(valid_when), F.lit(False)), F.lit("the row does not meet valid_when")
        )
    )


def _header(name: str, value: Column) -> Column:
    return F.struct(F.lit(name).alias("key"), value.cast("string").cast("binary").alias("value"))
