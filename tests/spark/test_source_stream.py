"""Streams that run while their topics change: partitions, leaders, records that go."""

import json
import time
import uuid

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions
from pyspark.errors import StreamingQueryException

from spark_eos.lag import LagListener, lags_of
from tests.chaos.oracle import assert_none_open


class Stream:
    """A query from a topic into files."""

    def __init__(self, spark, kafka, topic, folder):
        self.spark = spark
        self.servers = kafka.bootstrap_servers
        self.topic = topic
        self.admin = AdminClient({"bootstrap.servers": self.servers})
        self._checkpoint, self._output = folder / "checkpoint", folder / "output"
        self._written = 0
        self.name = f"stream_{uuid.uuid4().hex}"
        self.query = None

    def write(self, count, partition=0):
        producer = Producer({"bootstrap.servers": self.servers, "log_level": 0})
        for _ in range(count):
            producer.produce(self.topic, f"{self._written}".encode(), partition=partition)
            self._written += 1
        assert producer.flush(60) == 0

    def trim(self, offset, partition=0):
        place = TopicPartition(self.topic, partition, offset)
        self.admin.delete_records([place])[place].result(20)

    def start(self, trigger=None, **options):
        given = {"kafka.bootstrap.servers": self.servers, "subscribe": self.topic}
        given |= {"startingOffsets": "earliest"}
        given |= {name.replace("__", "."): str(value) for name, value in options.items()}
        rows = self.spark.readStream.format("txnkafka").options(**given).load()
        self.query = (
            rows.selectExpr("*", "spark_partition_id() AS task")
            .select("value", "partition", "offset", "task")
            .writeStream.format("parquet")
            .queryName(self.name)
            .option("checkpointLocation", str(self._checkpoint))
            .option("path", str(self._output))
            .trigger(**(trigger or {"processingTime": "100 milliseconds"}))
            .start()
        )
        return self.query

    def rows(self):
        if not (self._output / "_spark_metadata" / "0").exists():
            return []
        schema = "value binary, partition int, offset long, task int"
        return self.spark.read.schema(schema).parquet(str(self._output)).collect()

    def values(self):
        return sorted(int(row.value) for row in self.rows())

    def wait_for(self, count, timeout_s=90):
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline and self.query.isActive:
            if len(self.rows()) >= count:
                break
            time.sleep(0.1)
        if self.query.exception() is not None:
            raise self.query.exception()
        assert self.values() == list(range(count))

    def fails_with(self, text):
        with pytest.raises(StreamingQueryException, match=text):
            self.query.awaitTermination(60)


@pytest.fixture
def stream(spark, kafka, topic, tmp_path):
    found = Stream(spark, kafka, topic(2), tmp_path)
    yield found
    if found.query is not None:
        found.query.stop()


def test_new_partitions_are_read_from_their_start_and_tasks_keep_their_partition(stream):
    stream.write(10, 0)
    stream.start()
    stream.wait_for(10)
    wanted = NewPartitions(stream.topic, 4)
    stream.admin.create_partitions([wanted])[stream.topic].result(20)
    stream.write(10, 3)
    stream.wait_for(20)
    stream.write(5, 1)
    stream.write(5, 3)
    stream.wait_for(30)
    assert {(row.partition, row.task) for row in stream.rows()} == {(0, 0), (1, 1), (3, 3)}


def test_trimmed_records_end_the_query_with_what_to_do(stream):
    stream.write(10)
    stream.start(maxOffsetsPerTrigger=5, trigger={"availableNow": True})
    assert stream.query.awaitTermination(60)
    stream.write(10)
    stream.trim(15)
    stream.start(trigger={"availableNow": True})
    stream.fails_with(r"(?s)offsets 10 to 14.*starts at 15.*failOnDataLoss")
    stream.start(trigger={"availableNow": True}, failOnDataLoss=False)
    assert stream.query.awaitTermination(60)
    assert stream.query.exception() is None
    assert stream.values() == [*range(10), *range(15, 20)]


def test_topic_that_is_deleted_while_it_is_read_is_noticed(stream):
    stream.write(10)
    stream.start()
    stream.wait_for(10)
    stream.admin.delete_topics([stream.topic])[stream.topic].result(20)
    stream.fails_with(r"(?s)does not exist any more")


def test_end_of_what_is_available_is_reached_where_only_markers_are_left(stream):
    settings = {"bootstrap.servers": stream.servers, "transactional.id": uuid.uuid4().hex}
    producer = Producer(settings)
    producer.init_transactions(20)
    for end in (producer.commit_transaction, producer.abort_transaction):
        producer.begin_transaction()
        producer.produce(stream.topic, b"0", partition=0)
        producer.flush(20)
        end(20)
    assert_none_open(stream.servers, stream.topic)
    stream.start(trigger={"availableNow": True}, maxOffsetsPerTrigger=1)
    assert stream.query.awaitTermination(60)
    assert stream.values() == [0]
    assert _end(stream.query.lastProgress, stream.topic) == 4


def test_too_few_records_wait_for_more(stream):
    stream.write(1)
    stream.start(minOffsetsPerTrigger=5, maxOffsetsPerTrigger=8)
    stream.wait_for(1)  # the first batch does not wait
    stream.write(3)
    time.sleep(1.5)
    assert stream.values() == [0]
    stream.write(16)
    stream.wait_for(17)  # three are left: too few
    stream.query.stop()
    ends = [_end(progress, stream.topic) for progress in stream.query.recentProgress]
    assert sorted(set(ends)) == [1, 9, 17]
    stream.start(minOffsetsPerTrigger=50, maxTriggerDelay="1s")
    stream.wait_for(20)
    stream.write(1)
    stream.wait_for(21)  # after a second


def test_lag_of_each_partition_is_in_the_progress_and_told_to_a_listener(stream):
    told = []
    listener = LagListener(lambda query, lag: told.append((query, lag)))
    stream.spark.streams.addListener(listener)
    try:
        stream.write(40, 0)
        stream.write(10, 1)
        stream.start(maxOffsetsPerTrigger=25, trigger={"availableNow": True})
        assert stream.query.awaitTermination(60)
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline and len(told) < 2:
            time.sleep(0.05)
    finally:
        stream.spark.streams.removeListener(listener)
    (name, first), (_, second) = told[:2]
    assert name == stream.name
    assert first.partitions == {f"{stream.topic}-0": 20, f"{stream.topic}-1": 5}
    assert (first.min, first.max, first.avg) == (5, 20, 12.5)
    assert second.max == 0
    (last,) = lags_of(stream.query.lastProgress)
    assert (last.min, last.max, last.avg) == (0, 0, 0.0)


@pytest.mark.slow
def test_stream_goes_on_while_a_leader_dies_and_comes_back(spark, kafka3, topic, tmp_path):
    stream = Stream(spark, kafka3, topic(1, on=kafka3), tmp_path)
    found = stream.admin.list_topics(stream.topic, timeout=20).topics[stream.topic]
    leader = found.partitions[0].leader
    stream.write(100)
    stream.start()
    try:
        stream.wait_for(100)
        kafka3.kill(leader)
        stream.write(100)
        stream.wait_for(200)
        kafka3.start_node(leader)
        stream.write(100)
        stream.wait_for(300)
    finally:
        stream.query.stop()
        if leader not in kafka3.pids:
            kafka3.start_node(leader)


def _end(progress, topic):
    """Where the batch ended in partition 0."""
    return json.loads(progress["sources"][0]["endOffset"])[topic]["0"]
