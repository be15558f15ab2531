"""The source's offsets in a consumer group, moved by the decision that makes the rows visible."""

import re
import uuid
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from deltalake import DeltaTable
from pyspark.errors import StreamingQueryException

from tests.chaos.oracle import assert_exactly_once


class Job:
    """Reads one topic and writes another, moving a group."""

    def __init__(self, spark, kafka, topic, folder):
        self.spark, self.servers = spark, kafka.bootstrap_servers
        self.read_topic, self.write_topic = topic(2), topic(2)
        self.group = f"group-{uuid.uuid4().hex}"
        self.checkpoint = folder / "checkpoint"

    def fill(self, first, last):
        producer = Producer({"bootstrap.servers": self.servers})
        for number in range(first, last):
            producer.produce(self.read_topic, f"{number}", partition=number % 2)
        assert producer.flush(30) == 0

    def run(self, source="txnkafka", **options):
        given = {"group.id": self.group} | {k.replace("__", "."): v for k, v in options.items()}
        rows = (
            self.spark.readStream.format(source)
            .option("kafka.bootstrap.servers", self.servers)
            .option("subscribe", self.read_topic)
            .option("startingOffsets", "earliest")
            .option("maxOffsetsPerTrigger", 20)
            .load()
        )
        query = (
            rows.select("key", "value")
            .writeStream.format("txnkafka")
            .option("kafka.bootstrap.servers", self.servers)
            .option("topic", self.write_topic)
            .option("checkpointLocation", str(self.checkpoint))
            .options(**given)
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(120), "the query did not end"
        return query

    def consumer(self):
        return Consumer(
            {
                "bootstrap.servers": self.servers,
                "group.id": self.group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
            }
        )

    def committed(self):
        places = [TopicPartition(self.read_topic, partition) for partition in (0, 1)]
        consumer = self.consumer()
        found = [place.offset for place in consumer.committed(places, timeout=20)]
        consumer.close()
        return found


@pytest.fixture
def job(spark, kafka, topic, tmp_path):
    return Job(spark, kafka, topic, tmp_path)


@pytest.mark.parametrize("source", ["txnkafka", "kafka"])
def test_offsets_move_with_the_rows_in_one_decision(job, source):
    job.fill(0, 50)
    job.run(source)
    assert job.committed() == [25, 25]
    job.fill(50, 60)
    job.run(source)
    assert job.committed() == [30, 30]
    assert_exactly_once(job.servers, job.write_topic, [str(n) for n in range(60)])
    log = DeltaTable(str(job.checkpoint / "transaction_state"))
    rows = log.to_pyarrow_table().to_pylist()
    offsets = [r for r in rows if r["transactional_id"].endswith("-offsets")]
    decided = {r["batch_id"]: r for r in offsets if r["transaction_status"] == "PrepareCommit"}
    assert sorted(decided) == [0, 1, 2, 3]
    assert {r["group_id"] for r in offsets} == {job.group}
    assert decided[0]["source_offsets"] == f'{{"{job.read_topic}": {{"0": 10, "1": 10}}}}'
    commits = [c for c in log.history() if c["operation"] == "WRITE"]
    assert len(commits) == 1 + 4  # the driver's start, and one for each batch, offsets or not


@pytest.fixture
def offset_log_version(request, spark):
    name = "spark.sql.streaming.offsetLog.formatVersion"
    spark.conf.set(name, request.param)
    yield request.param
    spark.conf.unset(name)


@pytest.mark.parametrize("offset_log_version", [1, 2], indirect=True)
def test_offsets_of_several_sources_move_together(job, topic, offset_log_version):
    """One of them Spark's own; each line of the checkpoint's offsets is one source."""
    other = topic(1)
    job.fill(0, 30)
    producer = Producer({"bootstrap.servers": job.servers})
    for number in range(30, 40):
        producer.produce(other, f"{number}")
    assert producer.flush(30) == 0
    sources = [
        job.spark.readStream.format(name)
        .option("kafka.bootstrap.servers", job.servers)
        .option("subscribe", subscribed)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", 10)
        .load()
        for name, subscribed in (("txnkafka", job.read_topic), ("kafka", other))
    ]
    query = (
        sources[0]
        .unionByName(sources[1])
        .select("value")
        .writeStream.format("txnkafka")
        .option("kafka.bootstrap.servers", job.servers)
        .option("topic", job.write_topic)
        .option("checkpointLocation", str(job.checkpoint))
        .option("group.id", job.group)
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(120)
    assert_exactly_once(job.servers, job.write_topic, [str(n) for n in range(40)])
    written = (job.checkpoint / "offsets" / "0").read_text()
    assert written.startswith(f"v{offset_log_version}\n")
    assert job.committed() == [15, 15]
    consumer = job.consumer()
    assert consumer.committed([TopicPartition(other, 0)], timeout=20)[0].offset == 10
    consumer.close()


def test_batch_whose_rows_are_all_left_out_moves_the_group_too(job):
    job.fill(0, 10)
    rows = (
        job.spark.readStream.format("txnkafka")
        .option("kafka.bootstrap.servers", job.servers)
        .option("subscribe", job.read_topic)
        .option("startingOffsets", "earliest")
        .load()
    )
    query = (
        rows.where("false")
        .select("value")
        .writeStream.format("txnkafka")
        .options(**{"kafka.bootstrap.servers": job.servers, "group.id": job.group})
        .option("topic", job.write_topic)
        .option("checkpointLocation", str(job.checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(60)
    assert job.committed() == [5, 5]


def test_plain_consumer_goes_on_where_the_query_stopped_and_back(job):
    job.fill(0, 40)
    job.run()
    job.fill(40, 100)
    consumer = job.consumer()
    consumer.subscribe([job.read_topic])
    seen = []
    while len(seen) < 25:
        message = consumer.poll(20)
        assert message is not None
        seen.append(message.value().decode())
        consumer.commit(message, asynchronous=False)
    with pytest.raises(StreamingQueryException, match=r"(?s)GroupInUseError.*is a member of group"):
        job.run()
    consumer.close()
    written = [str(number) for number in range(40)]
    assert_exactly_once(job.servers, job.write_topic, written)
    rest = (
        job.spark.read.format("txnkafka")
        .option("kafka.bootstrap.servers", job.servers)
        .option("subscribe", job.read_topic)
        .option("startingOffsets", "group")
        .option("group.id", job.group)
        .load()
    )
    taken_over = [row.value.decode() for row in rest.collect()]
    assert sorted([*written, *seen, *taken_over], key=int) == [str(n) for n in range(100)]


def test_group_whose_offsets_are_gone_is_refused_and_the_log_has_them(job):
    job.fill(0, 40)
    job.run()
    job.fill(40, 50)
    admin = AdminClient({"bootstrap.servers": job.servers})
    admin.delete_consumer_groups([job.group])[job.group].result(30)

    def read(start):
        rows = (
            job.spark.read.format("txnkafka")
            .option("kafka.bootstrap.servers", job.servers)
            .option("subscribe", job.read_topic)
            .option("startingOffsets", start)
            .option("group.id", job.group)
            .load()
        )
        return sorted(int(row.value) for row in rows.collect())

    with pytest.raises(Exception, match=f"group '{job.group}' has no committed offsets"):
        read("group")
    page = (Path(__file__).parents[2] / "docs" / "source.md").read_text()
    (query,) = re.findall(r"```sql\n(.*?)```", page, re.DOTALL)
    query = query.replace("'invoicing'", f"'{job.group}'")
    query = query.replace(
        "/data/checkpoints/invoices/transaction_state", str(job.checkpoint / "transaction_state")
    )
    (last,) = job.spark.sql(query).collect()
    assert (job.checkpoint / "commits" / str(last.batch_id)).exists()
    assert read(last.source_offsets) == list(range(40, 50))


def test_group_without_a_kafka_source_is_refused(spark, sink, topic):
    sink.add([("a",)], "value string")
    with pytest.raises(StreamingQueryException, match="no source of the query reads from Kafka"):
        sink.write("value string", topic=topic(1), group__id="g").awaitTermination()
