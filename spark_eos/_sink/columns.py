"""Planner worker. Check the query's schema against the columns that the sink accepts.

Names and types are those of Spark's own Kafka sink, with `timestamp` added. Other columns are
ignored, as in Spark's sink: a frame that was read from Kafka can be written unchanged.
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
            continue  # the option overrides the column
        found = [field for field in schema.fields if field.name.lower() == name]
        if len(found) > 1:
            raise OptionError(
                "the frame has column '{column}' {count} times. Keep one of them",
                column=name,
                count=len(found),
            )
        if found and not accepts(found[0].dataType):
            raise OptionError(
                "column '{column}' is of type {kind}; {accepted} is accepted. Cast the column",
                column=name,
                kind=found[0].dataType.simpleString(),
                accepted=accepted,
            )
    names = [field.name.lower() for field in schema.fields]
    if "value" not in names:
        columns = ", ".join(names) or "none"
        raise OptionError("column 'value' is missing; the columns are {columns}", columns=columns)
    if topic is None and "topic" not in names:
        raise OptionError(
            "no topic: set the option '{option}' or add a string column 'topic'", option="topic"
        )
