"""The sink in a real session: columns, topics, one commit a batch, a log that Spark can read."""

from datetime import UTC, datetime, timedelta

import pytest
from chispa import assert_df_equality
from pyspark.sql.functions import col

from tests.chaos.oracle import committed_messages

ALL = (
    "key binary, value string, partition int,"
    " headers array<struct<key: string, value: binary>>, timestamp timestamp"
)


def read(bootstrap_servers, topic):
    """All committed messages of a topic, by a plain client, in the order of each partition."""
    return list(committed_messages(bootstrap_servers, topic).values())


def test_every_column_reaches_the_record(sink, topic):
    name = topic(3)
    moment = datetime(2026, 3, 4, 5, 6, 7, 89_000, tzinfo=UTC)
    sink.add(
        [
            (b"\x00\xff", "text", 2, [("h", b"1"), ("h", None)], moment),
            (None, None, 0, None, None),
            (b"", "", 1, [], moment),
        ],
        ALL,
    )
    sink.write(ALL, topic=name)
    by_partition = {m.partition(): m for m in read(sink.bootstrap_servers, name)}
    full, tombstone, empty = by_partition[2], by_partition[0], by_partition[1]
    assert (full.key(), full.value()) == (b"\x00\xff", b"text")
    assert full.headers() == [("h", b"1"), ("h", None)]
    assert full.timestamp()[1] == int(moment.timestamp() * 1000)
    assert (tombstone.key(), tombstone.value(), tombstone.headers()) == (None, None, None)
    assert (empty.key(), empty.value()) == (b"", b"")


def test_topic_column_routes_rows_in_one_decision(sink, topic, spark):
    one, other = topic(1), topic(2)
    schema = "value string, topic string"
    sink.add([("a", one), ("b", other), ("c", one)], schema)
    sink.write(schema)
    assert [m.value() for m in read(sink.bootstrap_servers, one)] == [b"a", b"c"]
    assert [m.value() for m in read(sink.bootstrap_servers, other)] == [b"b"]
    assert spark.read.format("delta").load(str(sink.log)).count() == 1


def test_keys_go_where_the_java_client_sends_them(sink, topic, spark):
    """A user who changes the format must not find a key in two partitions."""
    ours, peers = topic(5), topic(5)
    rows = [(f"key-{i}", str(i)) for i in range(200)]
    sink.add(rows, "key string, value string")
    sink.write("key string, value string", topic=ours)
    spark.createDataFrame(rows, "key string, value string").write.format("kafka").option(
        "kafka.bootstrap.servers", sink.bootstrap_servers
    ).option("topic", peers).save()

    def places(topic_name):
        found = read(sink.bootstrap_servers, topic_name)
        return {m.key(): m.partition() for m in found}

    assert places(ours) == places(peers)


@pytest.mark.parametrize("headers", [False, True])
def test_each_row_goes_to_its_own_partition_with_its_own_time(sink, topic, headers):
    """With and without headers: librdkafka's batch call knows neither partition nor time."""
    name, at = topic(3), datetime(2020, 1, 2, tzinfo=UTC)
    rows = [(f"{i}", i % 3, at + timedelta(seconds=i)) for i in range(30)]
    schema = "value string, partition int, timestamp timestamp"
    if headers:
        schema += ", headers array<struct<key: string, value: binary>>"
        rows = [(*row, [("h", b"1")]) for row in rows]
    sink.add(rows, schema)
    sink.write(schema, topic=name)
    found = read(sink.bootstrap_servers, name)
    assert len(found) == 30
    start = int(at.timestamp() * 1000)
    for message in found:
        number = int(message.value())
        assert message.partition() == number % 3
        assert message.timestamp()[1] == start + 1000 * number


def test_order_within_a_partition_is_the_order_of_the_rows(sink, topic):
    name = topic(1)
    values = [str(i) for i in range(30_000)]
    sink.add([(v,) for v in values], "value string")
    sink.write("value string", topic=name)
    assert [m.value().decode() for m in read(sink.bootstrap_servers, name)] == values


def test_one_delta_commit_per_micro_batch(sink, topic):
    name = topic(2)
    for batch in range(4):
        sink.add([(str(batch),)], "value string")
    sink.write("value string", topic=name)
    commits = [path for path in (sink.log / "_delta_log").glob("*.json") if path.stem.isdigit()]
    assert len(commits) == 1 + 1 + 4  # the table, the driver's start, a decision for each batch


def test_batch_without_rows_costs_no_transaction_and_no_commit(sink, topic):
    name = topic(1)
    sink.add([], "value string")
    sink.write("value string", topic=name)
    assert read(sink.bootstrap_servers, name) == []
    # The table itself, and the driver's start.
    assert len(list((sink.log / "_delta_log").glob("*.json"))) == 1 + 1


def test_log_tells_what_happened_to_any_batch(sink, topic, spark):
    name = topic(1)
    for batch in range(3):
        sink.add([(f"{batch}-{row}",) for row in range(batch + 1)], "value string")
    sink.write("value string", topic=name)
    log = spark.read.format("delta").load(str(sink.log))
    told = log.select(
        "version",
        "batch_id",
        "transaction_status",
        col("sink_partition").alias("partition"),
        col("transaction_partitions")[0]["records"].alias("records"),
        col("transaction_partitions")[0]["topic"].alias("topic"),
    )
    expected = spark.createDataFrame(
        [
            (3, 0, "PrepareCommit", 0, 1, name),
            (3, 0, "CompleteCommit", 0, 1, name),
            (3, 1, "PrepareCommit", 0, 2, name),
            (3, 1, "CompleteCommit", 0, 2, name),
            (3, 2, "PrepareCommit", 0, 3, name),
        ],
        "version short, batch_id long, transaction_status string, partition int, records long,"
        " topic string",
    )
    assert_df_equality(told, expected, ignore_row_order=True, ignore_nullable=True)


def test_two_queries_share_one_log_and_one_topic(sink, topic, tmp_path, spark):
    name, shared = topic(2), str(tmp_path / "shared")
    sink.add([("a",)], "value string")
    sink.write("value string", topic=name, transactionLog=shared)
    sink.checkpoint = tmp_path / "second"
    sink.write("value string", topic=name, transactionLog=shared)
    assert sorted(m.value() for m in read(sink.bootstrap_servers, name)) == [b"a", b"a"]
    log = spark.read.format("delta").load(shared)
    assert log.select("query_id").distinct().count() == 2


def test_explicit_registration_serves_the_same_format(sink, topic, spark):
    import spark_eos

    spark_eos.register(spark)
    name = topic(1)
    sink.add([("a",)], "value string")
    sink.write("value string", topic=name)
    assert [m.value() for m in read(sink.bootstrap_servers, name)] == [b"a"]
