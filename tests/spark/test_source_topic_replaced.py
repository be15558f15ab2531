"""A source topic that is deleted and created again while the query is down."""

import time

import pytest
from confluent_kafka import TopicCollection
from confluent_kafka.admin import AdminClient
from pyspark.errors import StreamingQueryException

from tests.spark import topics


class Query:
    """Keeps the values of each micro-batch that it completes."""

    def __init__(self, spark, servers, folder):
        self._spark, self._servers = spark, servers
        self._checkpoint = str(folder / "checkpoint")
        self._admin = AdminClient({"bootstrap.servers": servers})
        self._crashes = False
        self.topic = topics.create(servers)
        self.values = []

    def write(self, first, last):
        records = [{"value": str(number)} for number in range(first, last)]
        topics.fill(self._servers, self.topic, records)

    def replace_topic(self):
        old = self._topic_id()
        self._admin.delete_topics([self.topic])[self.topic].result(20)
        topics.create(self._servers, name=self.topic)
        deadline = time.monotonic() + 20
        while self._topic_id() in (old, None):  # the broker hears of it later than the controller
            assert time.monotonic() < deadline, "the old topic is still there"
            time.sleep(0.05)

    def _topic_id(self):
        described = self._admin.describe_topics(TopicCollection([self.topic]))[self.topic]
        if described.exception(20) is not None:
            return None
        found = described.result().topic_id
        return found.get_most_significant_bits(), found.get_least_significant_bits()

    def run(self, **options):
        rows = (
            self._spark.readStream.format("txnkafka")
            .option("kafka.bootstrap.servers", self._servers)
            .options(subscribe=self.topic, startingOffsets="earliest", **options)
            .load()
        )
        query = (
            rows.selectExpr("int(string(value)) AS value")
            .writeStream.foreachBatch(self._keep)
            .option("checkpointLocation", self._checkpoint)
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(120), "the query did not end"

    def crash(self):
        """Stop after the batch was planned, before it is complete."""
        self._crashes = True
        with pytest.raises(StreamingQueryException, match="as it was told to"):
            self.run()
        self._crashes = False

    def fails_with(self, text):
        with pytest.raises(StreamingQueryException, match=text):
            self.run()

    def _keep(self, batch, _batch_id):
        if self._crashes:
            raise RuntimeError("it crashes, as it was told to")
        self.values += sorted(row.value for row in batch.collect())


@pytest.fixture
def query(spark, kafka, tmp_path):
    return Query(spark, kafka.bootstrap_servers, tmp_path)


def test_new_topic_with_more_records_than_were_read_of_the_old_one(query):
    query.write(0, 10)
    query.run()
    query.replace_topic()
    query.write(100, 125)
    query.fails_with(
        rf"(?s)DataLossError: topic '{query.topic}' was deleted and created again\. It was read up"
        rf" to offset {query.topic}-0: 10\..*new checkpointLocation.*failOnDataLoss"
    )
    assert query.values == [*range(10)]
    query.run(failOnDataLoss="false", maxOffsetsPerTrigger="10")
    assert query.values == [*range(10), *range(100, 125)]


def test_micro_batch_that_runs_again_over_a_new_topic(query):
    """Spark does not ask where the topic ends before it runs the batch again."""
    query.write(0, 5)
    query.run()
    query.write(5, 10)
    query.crash()
    query.replace_topic()
    query.write(100, 125)
    query.fails_with(
        rf"(?s)DataLossError: topic '{query.topic}' was deleted and created again\. The micro-batch"
        rf" that runs again was to read from offset {query.topic}-0: 5 to offset .*-0: 10\."
    )
    query.run(failOnDataLoss="false")
    assert query.values == [*range(5), *range(100, 125)]
