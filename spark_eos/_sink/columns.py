"""Planner worker. The columns that the sink takes, checked once against the query's schema.

Names and types are those of Spark's own Kafka sink, with `timestamp` added. Other columns are left
alone, as there: a frame that was read from Kafka can be written as it is.
"""

from collections.abc import Callable

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    StringType,
    StructType,
    TimestampType,
)

from spark_eos.errors import OptionError


def _is_text(kind: DataType) -> bool:
    return isinstance(kind, StringType | BinaryType)


def _is_headers(kind: DataType) -> bool:
    return (
        isinstance(kind, ArrayType)
        and isinstance(kind.elementType, StructType)
        and [field.name for field in kind.elementType] == ["key", "value"]
        and isinstance(kind.elementType[0].dataType, StringType)
        and isinstance(kind.elementType[1].dataType, BinaryType)
    )


_ACCEPTED: dict[str, tuple[Callable[[DataType], bool], str]] = {
    "key": (_is_text, "string or binary"),
    "value": (_is_text, "string or binary"),
    "topic": (lambda kind: isinstance(kind, StringType), "string"),
    "partition": (lambda kind: isinstance(kind, IntegerType), "int"),
    "headers": (_is_headers, "array<struct<key: string, value: binary>>"),
    "timestamp": (lambda kind: isinstance(kind, TimestampType), "timestamp"),
}


def check_columns(schema: StructType, topic: str | None) -> None:
    """Raise unless rows of this schema can become Kafka records."""
    for name, (accepts, accepted) in _ACCEPTED.items():
        if name == "topic" and topic is not None:
            continue  # the option wins, whatever the column holds
        found = [field for field in schema.fields if field.name.lower() == name]
        if len(found) > 1:
            raise OptionError(f"column '{name}' is there {len(found)} times; keep one of them")
        if found and not accepts(found[0].dataType):
            raise OptionError(
                f"column '{name}' is of type {found[0].dataType.simpleString()};"
                f" {accepted} is accepted. Cast it"
            )
    names = [field.name.lower() for field in schema.fields]
    if "value" not in names:
        raise OptionError(
            f"column 'value' is missing; the columns are {', '.join(names) or 'none'}"
        )
    if topic is None and "topic" not in names:
        raise OptionError("no topic: set the option 'topic' or add a string column 'topic'")
