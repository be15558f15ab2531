"""Driver. Sources as views for SQL; rows that do not parse on their way to the dead-letter topic.

A dead letter is the record as it was, key and value untouched, with headers that say why it is
there and where it came from. It is a row of the same query, so it becomes visible by the same
decision as the good rows of its batch.
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
    """The records of the source at this place of the file, parsed; with why one is bad, if so."""
    source: Source = _at(configuration, place)
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
        good(frame, source)  # so that a wrong one is told here, with its line
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
    origin = [
        _header(f"__error.{name}", F.col(column))
        for name, column in {
            "reason": _ERROR,
            "topic": "topic",
            "partition": "partition",
            "offset": "offset",
        }.items()
    ]
    headers = F.array(*origin).cast(_HEADERS)
    if "headers" in frame.columns:
        headers = F.concat(F.coalesce("headers", F.array().cast(_HEADERS)), headers)
    bad = frame.where(F.col(_ERROR).isNotNull())
    return bad.select("key", "value", headers.alias("headers"))


def select(
    spark: SparkSession,
    configuration: Configuration[Any],
    query: str,
    *columns: str,
    needs: str = "",
) -> DataFrame:
    """The result of the transform, which must have the columns that `needs` names in the file."""
    with configuration.blame("transform"):
        rows = spark.sql(query)
    missing = sorted(set(columns) - set(rows.columns))
    if missing:
        with configuration.blame(needs):
            raise OptionError(f"the transform gives no column {', '.join(missing)}")
    return rows


def _error(valid_when: str) -> Column:
    """Why a row is bad; null for a good one. A record without a value has nothing to parse."""
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


def _at(configuration: Configuration[Job], place: tuple[str, ...]) -> Source:
    found: Any = getattr(configuration.job, place[0])
    source: Source = found[place[1]] if len(place) > 1 else found
    return source
