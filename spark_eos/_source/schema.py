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
    """`headers` is there on request only: most topics have none, and each costs."""
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
    """Raise where the user gave a schema of their own."""
    if given != source_schema(include_headers):
        raise OptionError(
            "a schema cannot be given: a read of Kafka has the columns "
            f"{', '.join(source_schema(include_headers).fieldNames())}. Parse key and value in the "
            "query, for instance with from_json"
        )
