"""Driver. Sources as views for SQL; rows that do not parse on their way to the dead-letter topic.

A dead letter is the record as it was, key and value untouched, with headers that say why it is
there and where it came from. It is a row of the same query, so it becomes visible by the same
decision as the good rows of its batch.
"""

from typing import Any, Final

from pyspark.errors import AnalysisException, ParseException, PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (Spark's own name for it)

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
        try:
            frame = frame.withColumn(PARSED, parsed)
        except (AnalysisException, ParseException) as error:
            raise configuration.error(*place, "parse", "schema", text=first_line(error)) from None
        condition = F.lit(True) if source.parse.valid_when is None else source.parse.valid_when
        try:
            frame = frame.withColumn(_ERROR, _error(condition))
        except (AnalysisException, ParseException) as error:
            raise configuration.error(
                *place, "parse", "valid_when", text=first_line(error)
            ) from None
        frame = frame.withColumn(PARSED, F.col(PARSED).dropFields(_MALFORMED))
    return frame


def good(frame: DataFrame, source: Source) -> DataFrame:
    """The rows that parse, with the source's watermark."""
    if source.parse is not None:
        frame = frame.where(F.col(_ERROR).isNull()).drop(_ERROR)
    if source.watermark is not None:
        frame = frame.withWatermark(source.watermark.column, source.watermark.delay)
    return frame


def dead(frame: DataFrame, topic: str) -> DataFrame:
    """The rows that do not parse, as records of the dead-letter topic."""
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
    return frame.where(F.col(_ERROR).isNotNull()).select(
        "key", "value", F.lit(topic).alias("topic"), headers.alias("headers")
    )


def with_dead_letters(rows: DataFrame, letters: list[DataFrame], topic: str | None) -> DataFrame:
    """Both kinds of rows in one frame, each with its topic. `topic` is the one of all good rows."""
    for name in ("key", "value"):
        if name in rows.columns:
            rows = rows.withColumn(name, F.col(name).cast("binary"))
    if topic is not None:
        rows = rows.withColumn("topic", F.lit(topic))
    for letter in letters:
        rows = rows.unionByName(letter, allowMissingColumns=True)
    return rows


def select(
    spark: SparkSession, configuration: Configuration[Job], *place: str, query: str
) -> DataFrame:
    """The result of a query in the file."""
    try:
        return spark.sql(query)
    except PySparkException as error:
        raise configuration.error(*place, text=first_line(error)) from None


def first_line(error: BaseException) -> str:
    """Without the plan or the stack that Spark puts below."""
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)


def _error(condition: Column | str) -> Column:
    """Why a row is bad; null for a good one. A record without a value has nothing to parse."""
    valid = F.expr(condition) if isinstance(condition, str) else condition
    parsed = F.col(PARSED)
    return (
        F.when(F.col("value").isNull(), F.lit(None).cast("string"))
        .when(parsed.isNull(), F.lit("the value is empty"))
        .when(parsed[_MALFORMED].isNotNull(), F.lit("the value is no JSON of the schema"))
        .when(~F.coalesce(valid, F.lit(False)), F.lit("the row does not meet valid_when"))
    )


def _header(name: str, value: Column) -> Column:
    return F.struct(F.lit(name).alias("key"), value.cast("string").cast("binary").alias("value"))


def _at(configuration: Configuration[Job], place: tuple[str, ...]) -> Source:
    found: Any = getattr(configuration.job, place[0])
    source: Source = found[place[1]] if len(place) > 1 else found
    return source
