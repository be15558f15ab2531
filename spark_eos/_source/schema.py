"""Every process. The columns of a read: those of Spark's own connector."""

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from spark_eos.errors import OptionError

_HEADERS = ArrayType(
    StructType([StructField("key", StringType()), StructField("value", BinaryType())])
)


def source_schema(include_headers: bool) -> StructType:
    """The columns. `headers` is optional, because it costs time and most topics have none."""
    fields = [
        StructField("key", BinaryType()),
        StructField("value", BinaryType()),
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("offset", LongType()),
        StructField("timestamp", TimestampType()),
        StructField("timestampType", IntegerType()),
    ]
    if include_headers:
        fields.append(StructField("headers", _HEADERS))
    return StructType(fields)


def check_schema(given: StructType, include_headers: bool) -> None:
    """Raise if the user gave another schema."""
    own = source_schema(include_headers)
    if given != own:
        raise OptionError(
            "a schema cannot be given: a read of Kafka has the columns {columns}. Parse key and"
            " value in the query, for example with from_json",
            columns=", ".join(own.fieldNames()),
        )
