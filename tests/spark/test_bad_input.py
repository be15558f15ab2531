"""Bad input: one clear error that names option, value and remedy, no row, no open transaction."""

import shutil
import time

import pytest
from pyspark.errors import StreamingQueryException

from tests.chaos.oracle import assert_exactly_once

ROWS = [("k", "v")]
SCHEMA = "key string, value string"


@pytest.fixture
def filled(sink):
    sink.add(ROWS, SCHEMA)
    return sink


def refused(sink, *texts, schema=SCHEMA, **options):
    """Run the query and expect it to stop with all of these texts."""
    with pytest.raises(StreamingQueryException) as caught:
        sink.write(schema, **options)
    for text in texts:
        assert text in str(caught.value)


def test_unknown_option(filled, topic):
    refused(filled, "OptionError", "unknown option 'topik'", "'topic'", topik=topic(1))


def test_missing_servers(filled, topic):
    refused(
        filled,
        "option kafka.bootstrap.servers is missing",
        topic=topic(1),
        kafka__bootstrap__servers=None,
    )


def test_missing_topic(filled):
    refused(filled, "no topic: set the option 'topic' or add a string column 'topic'")


def test_missing_checkpoint_option(filled, topic, tmp_path, spark):
    """Spark takes the session's location; the sink must not write without knowing it."""
    spark.conf.set("spark.sql.streaming.checkpointLocation", str(tmp_path / "session"))
    try:
        refused(
            filled, "option checkpointLocation is missing", topic=topic(1), checkpointLocation=None
        )
    finally:
        spark.conf.unset("spark.sql.streaming.checkpointLocation")


def test_missing_value_column(sink, topic):
    name = topic(1)
    sink.add([("k",)], "key string")
    refused(sink, "column 'value' is missing", schema="key string", topic=name)
    assert_exactly_once(sink.bootstrap_servers, name, [])


def test_value_column_of_the_wrong_type(sink, topic):
    sink.add([(1,)], "value int")
    refused(sink, "'value' is of type int; string or binary", schema="value int", topic=topic(1))


def test_topic_that_does_not_exist(filled):
    refused(filled, "OptionError", "topic 'nowhere' does not exist", "Create it", topic="nowhere")


def test_topic_in_a_column_that_does_not_exist(sink, topic):
    name = topic(1)
    schema = "value string, topic string"
    sink.add([("a", name), ("b", "nowhere")], schema)
    refused(sink, "OptionError", "topic 'nowhere'", schema=schema)
    assert_exactly_once(sink.bootstrap_servers, name, [])


def test_unreachable_broker(filled):
    began = time.monotonic()
    refused(
        filled,
        "BrokerUnreachableError",
        "127.0.0.1:9",
        topic="t",
        kafka__bootstrap__servers="127.0.0.1:9",
        apiTimeoutMs="3000",
    )
    assert time.monotonic() - began < 60


def test_time_out_above_the_brokers_maximum(filled, topic):
    refused(
        filled,
        "kafka.transaction.timeout.ms 900001",
        "transaction.max.timeout.ms 900000",
        topic=topic(1),
        kafka__transaction__timeout__ms="900001",
    )


def test_log_that_is_another_delta_table(filled, topic, spark, tmp_path):
    path = str(tmp_path / "other")
    spark.range(3).write.format("delta").save(path)
    refused(
        filled, "ForeignTableError", path, "transactionLog", topic=topic(1), transactionLog=path
    )
    assert spark.read.format("delta").load(path).count() == 3


def test_log_of_a_newer_version(filled, topic, spark, tmp_path):
    name, upgraded = topic(1), tmp_path / "upgraded"
    filled.write(SCHEMA, topic=name)
    shutil.copytree(filled.log, upgraded)
    log = spark.read.format("delta").load(str(upgraded))
    newer = log.selectExpr("CAST(version + 1 AS SHORT) AS version", *log.columns[1:])
    newer.write.format("delta").mode("append").save(str(upgraded))
    filled.add([("k", "more")], SCHEMA)
    refused(filled, "LogVersionError", "upgrade", topic=name, transactionLog=str(upgraded))
    assert_exactly_once(filled.bootstrap_servers, name, ["v"])


@pytest.mark.parametrize(
    "client_limit", ["1000000", "8000000"], ids=["at the client", "at the broker"]
)
def test_record_larger_than_the_broker_takes(sink, topic, client_limit):
    name = topic(1)
    sink.add([("small",), ("x" * 2_000_000,)], "value string")
    refused(
        sink,
        "OptionError",
        "2000000 bytes",
        "max.message.bytes",
        schema="value string",
        topic=name,
        kafka__message__max__bytes=client_limit,
    )
    assert_exactly_once(sink.bootstrap_servers, name, [])


@pytest.mark.parametrize("partition", [3, -1, 2_000_000])
def test_partition_out_of_range(sink, topic, partition):
    name = topic(3)
    schema = "value string, partition int"
    sink.add([("a", 0), ("b", partition)], schema)
    refused(sink, f"holds {partition}", "partitions 0 to 2", schema=schema, topic=name)
    assert_exactly_once(sink.bootstrap_servers, name, [])


def test_option_that_librdkafka_does_not_know(filled, topic):
    refused(filled, "OptionError", "kafka.lingering.ms", topic=topic(1), kafka__lingering__ms="5")


def test_secret_is_in_no_error(filled, topic):
    with pytest.raises(StreamingQueryException) as caught:
        filled.write(
            SCHEMA,
            topic=topic(1),
            kafka__security__protocol="SASL_PLAINTEXT",  # which this broker does not speak
            kafka__sasl__mechanism="PLAIN",
            kafka__sasl__username="user",
            kafka__sasl__password="hunter2",
            apiTimeoutMs="3000",
        )
    assert "spark_eos.errors" in str(caught.value)
    assert "hunter2" not in str(caught.value)
