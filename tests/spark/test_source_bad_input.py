"""Mistakes in a read: one clear error each, from Spark, before a row is read."""

import re

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.errors import AnalysisException, StreamingQueryException


@pytest.fixture(scope="module")
def numbers(kafka):
    """A topic of two partitions with offsets 2 to 9 in the first and none in the second."""
    name = "source-bad-input"
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    admin.create_topics([NewTopic(name, 2)])[name].result(30)
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    for number in range(10):
        producer.produce(name, f"{number}", partition=0, timestamp=1000 + number)
    assert producer.flush(30) == 0
    trimmed = TopicPartition(name, 0, 2)
    admin.delete_records([trimmed])[trimmed].result(30)
    return name


MISTAKES = [
    ({"subscribe": "nowhere"}, "topic 'nowhere' does not exist"),
    ({"subscribe": None, "assign": '{"T":[0,7]}'}, "partition T-7 does not exist"),
    ({"subscribe": None}, "one of assign, subscribe and subscribePattern is required"),
    ({"startingOffsets": '{"T":{"0":5}}'}, "must name every partition that is read: T-1"),
    ({"startingOffsets": '{"T":{"0":5,"1":0,"2":0}}'}, "names T-2, which is not among"),
    ({"startingOffsets": '{"T":{"0":5,"1":0}'}, "startingOffsets .*Give JSON such as"),
    ({"startingOffsets": '{"T":{"0":-3,"1":0}}'}, "-3 of partition T-0 is not accepted"),
    ({"startingOffsets": '{"T":{"0":11,"1":0}}'}, "T-0 is 11, but the partition ends at 10"),
    ({"startingOffsets": '{"T":{"0":1,"1":0}}'}, "T-0 is 1, but the partition starts at 2"),
    ({"endingOffsets": '{"T":{"0":11,"1":0}}'}, "endingOffsets of T-0 is 11, but .* ends at 10"),
    ({"startingOffsets": "latest"}, "startingOffsets cannot be latest"),
    ({"startingTimestamp": "9999"}, "no record of T-0 is at or after the time 9999"),
    ({"startingOffsets": "group", "group.id": "nobody", "endingOffsets": "earliest"}, "earliest"),
    ({"kafka.auto.offset.reset": "latest"}, "kafka.auto.offset.reset cannot be set"),
    ({"kafka.no.such": "1"}, "kafka.no.such"),
    ({"kafka.max.poll.records": "5"}, "kafka.max.poll.records is a setting of the Java client"),
    ({"startingOfsets": "earliest"}, "did you mean 'startingOffsets'"),
    ({"minPartitions": "0"}, "minPartitions '0'"),
]


@pytest.mark.parametrize(("changes", "text"), MISTAKES)
def test_mistake_is_told_once_and_clearly(spark, kafka, numbers, changes, text):
    given = {"kafka.bootstrap.servers": kafka.bootstrap_servers, "subscribe": numbers} | changes
    given = {k: v.replace('"T"', f'"{numbers}"') for k, v in given.items() if v is not None}
    rows = spark.read.format("txnkafka").options(**given).load()
    expected = text.replace("T-", f"{numbers}-")
    with pytest.raises(AnalysisException) as caught:
        rows.collect()
    (told,) = [line for line in str(caught.value).splitlines() if "spark_eos.errors." in line]
    assert re.search(expected, told)


def test_ending_of_a_stream_is_refused(spark, kafka, numbers):
    rows = (
        spark.readStream.format("txnkafka")
        .option("kafka.bootstrap.servers", kafka.bootstrap_servers)
        .option("subscribe", numbers)
        .option("endingOffsets", "latest")
        .load()
    )
    query = rows.writeStream.format("noop").start()
    with pytest.raises(StreamingQueryException, match="endingOffsets is for batch reads"):
        query.awaitTermination(60)


def test_own_schema_is_refused(spark, kafka, numbers):
    rows = (
        spark.read.format("txnkafka")
        .schema("a int")
        .option("kafka.bootstrap.servers", kafka.bootstrap_servers)
        .option("subscribe", numbers)
        .load()
    )
    with pytest.raises(AnalysisException, match="a schema cannot be given"):
        rows.collect()
