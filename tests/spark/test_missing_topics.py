"""A missing topic is an error on every path, and no path creates it.

The broker here creates a missing topic for every client that does not say otherwise.
"""

import uuid

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from spark_eos.testing import EmbeddedKafka
from tests.conftest import ADMIN_TIMEOUT_S, SMALL_JVM
from tests.spark.conftest import Sink

COLUMNS = "value string, topic string"


@pytest.fixture(scope="module")
def creating(tmp_path_factory):
    folder = tmp_path_factory.mktemp("creating")
    own = {"auto.create.topics.enable": "true"}
    with EmbeddedKafka(folder, properties=own, jvm_flags=SMALL_JVM) as cluster:
        yield cluster


@pytest.fixture
def there(topic, creating):
    """The name of a topic that exists."""
    return topic(1, on=creating)


@pytest.fixture
def missing():
    """The name of a topic that does not exist."""
    return f"mistyped-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def own_sink(spark, creating, tmp_path):
    return Sink(spark, creating, tmp_path)


@pytest.fixture(autouse=True)
def _none_is_created(topic, creating, there):
    before = topics(creating) | {there}
    yield
    # The controller works in order: what was asked for before this topic is there before it.
    last = topic(1, on=creating)
    assert topics(creating) - before - {last} <= {"__consumer_offsets", "__transaction_state"}


def topics(cluster):
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    return set(admin.list_topics(timeout=ADMIN_TIMEOUT_S).topics)


def refused(run, topic):
    with pytest.raises(Exception, match=f"OptionError: (.|\n)*'{topic}'"):
        run()


def batch_write(spark, cluster, rows, schema, **options):
    given = {"kafka.bootstrap.servers": cluster.bootstrap_servers, "apiTimeoutMs": "15000"}
    frame = spark.createDataFrame(rows, schema).coalesce(1)
    frame.write.format("txnkafka").mode("append").options(**given, **options).save()


def test_the_broker_creates_topics_for_others(creating):
    """Else no test here could fail."""
    name = f"created-{uuid.uuid4().hex[:8]}"
    producer = Producer({"bootstrap.servers": creating.bootstrap_servers})
    producer.produce(name, b"x")
    assert producer.flush(ADMIN_TIMEOUT_S) == 0
    admin = AdminClient({"bootstrap.servers": creating.bootstrap_servers})
    admin.delete_topics([name])[name].result(ADMIN_TIMEOUT_S)


@pytest.mark.parametrize("guarantee", ["exactly_once", "at_least_once"])
def test_stream_write_to_a_missing_topic_in_a_column(own_sink, there, missing, guarantee):
    own_sink.add([("a", there), ("b", missing)], COLUMNS)
    refused(lambda: own_sink.write(COLUMNS, deliveryGuarantee=guarantee), missing)


@pytest.mark.parametrize("guarantee", ["exactly_once", "at_least_once"])
def test_stream_write_to_a_missing_topic_of_the_option(own_sink, missing, guarantee):
    own_sink.add([("a",)], "value string")
    refused(
        lambda: own_sink.write("value string", topic=missing, deliveryGuarantee=guarantee), missing
    )


@pytest.mark.parametrize("guarantee", ["exactly_once", "at_least_once"])
def test_batch_write_to_a_missing_topic_in_a_column(spark, creating, there, missing, guarantee):
    rows = [("a", there), ("b", missing)]
    refused(
        lambda: batch_write(spark, creating, rows, COLUMNS, deliveryGuarantee=guarantee), missing
    )


@pytest.mark.parametrize("guarantee", ["exactly_once", "at_least_once"])
def test_batch_write_to_a_missing_topic_of_the_option(spark, creating, missing, guarantee):
    options = {"topic": missing, "deliveryGuarantee": guarantee}
    refused(lambda: batch_write(spark, creating, [("a",)], "value string", **options), missing)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"isolation.level": "read_uncommitted"},
        {"startingOffsets": "group", "group.id": "g"},
    ],
    ids=["committed", "uncommitted", "group"],
)
def test_read_of_a_missing_topic(spark, creating, tmp_path, missing, options):
    servers = creating.bootstrap_servers
    given = {"kafka.bootstrap.servers": servers, "subscribe": missing} | options

    def stream():
        rows = spark.readStream.format("txnkafka").options(**given).load()
        query = (
            rows.writeStream.format("noop")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        try:
            assert query.awaitTermination(90), "the query did not end"
        finally:
            query.stop()

    refused(stream, missing)
    refused(lambda: spark.read.format("txnkafka").options(**given).load().collect(), missing)


def test_group_of_a_source_on_another_cluster(spark, kafka, topic, creating, there, tmp_path):
    """The offsets would go to a cluster that does not have the source's topic."""
    source = topic(1)
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    producer.produce(source, b"x")
    assert producer.flush(ADMIN_TIMEOUT_S) == 0

    def run():
        rows = (
            spark.readStream.format("txnkafka")
            .option("kafka.bootstrap.servers", kafka.bootstrap_servers)
            .option("subscribe", source)
            .option("startingOffsets", "earliest")
            .load()
        )
        query = (
            rows.select("value")
            .writeStream.format("txnkafka")
            .option("kafka.bootstrap.servers", creating.bootstrap_servers)
            .option("topic", there)
            .option("group.id", "g")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        try:
            assert query.awaitTermination(90), "the query did not end"
        finally:
            query.stop()

    refused(run, source)
