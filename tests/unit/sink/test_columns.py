"""The schema of a query is checked before a row is written."""

import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DoubleType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructType,
    TimestampType,
)

from spark_eos._sink.columns import check_columns
from spark_eos.errors import OptionError

S, B, L, T, INT = StringType(), BinaryType(), LongType(), TimestampType(), IntegerType()


def schema(*columns):
    found = StructType()
    for name, kind in columns:
        found.add(name, kind)
    return found


def headers(key="key", value="value", kind=B):
    return ArrayType(schema((key, S), (value, kind)))


VALUE = ("value", S)


@pytest.mark.parametrize(
    "columns",
    [
        [("value", B)],
        [("VALUE", S), ("other", DoubleType())],
        [
            *[("key", B), VALUE, ("topic", S), ("partition", INT)],
            *[("headers", headers()), ("timestamp", T)],
        ],
    ],
)
def test_accepted(columns):
    check_columns(schema(*columns), "t")


def test_topic_column_is_enough():
    check_columns(schema(VALUE, ("topic", S)), None)


def test_topic_column_of_any_type_is_ignored_where_the_option_wins():
    check_columns(schema(VALUE, ("topic", INT)), "t")


@pytest.mark.parametrize(
    ("columns", "topic", "text"),
    [
        ([("key", S)], "t", "'value' is missing; the columns are key"),
        ([("value", INT)], "t", "'value' is of type int; string or binary"),
        ([VALUE, ("key", L)], "t", "'key' is of type bigint"),
        ([VALUE, ("partition", L)], "t", "'partition' is of type bigint; int"),
        ([VALUE, ("partition", S)], "t", "'partition' is of type string"),
        ([VALUE, ("topic", INT)], None, "'topic' is of type int; string"),
        ([VALUE], None, "no topic: set the option 'topic'"),
        ([VALUE, ("headers", MapType(S, S))], "t", "'headers' is of type map"),
        ([VALUE, ("headers", headers("k", "v"))], "t", "'headers'"),
        ([VALUE, ("headers", headers(kind=S))], "t", "'headers'"),
        ([VALUE, ("timestamp", L)], "t", "'timestamp' is of type bigint"),
        ([VALUE, ("VALUE", S)], "t", "the frame has column 'value' 2 times"),
    ],
)
def test_refused(columns, topic, text):
    with pytest.raises(OptionError, match=text):
        check_columns(schema(*columns), topic)
