"""Many queries on one log, many partitions, and micro-batches of one row and of two million."""

import uuid

import pytest

from tests.chaos.oracle import assert_exactly_once, committed_values

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


class Queries:
    """Streaming queries on one transaction log."""

    def __init__(self, spark, bootstrap_servers, folder):
        self.spark, self.bootstrap_servers, self.folder = spark, bootstrap_servers, folder

    def start(self, rows, topic, **trigger):
        return (
            rows.writeStream.format("txnkafka")
            .option("kafka.bootstrap.servers", self.bootstrap_servers)
            .option("topic", topic)
            .option("checkpointLocation", str(self.folder / uuid.uuid4().hex))
            .option("transactionLog", str(self.folder / "transaction_state"))
            .trigger(**trigger)
            .start()
        )

    def input(self, rows, partitions, files=1):
        """Files of numbers, each a micro-batch."""
        path = str(self.folder / uuid.uuid4().hex)
        size = rows // files
        for first in range(0, rows, size):
            numbers = self.spark.range(first, first + size, numPartitions=1)
            numbers.selectExpr("string(id) AS value").write.mode("append").parquet(path)
        frame = self.spark.readStream.schema("value string").option("maxFilesPerTrigger", 1)
        return frame.parquet(path).repartition(partitions)


@pytest.fixture
def queries(spark, kafka, tmp_path):
    return Queries(spark, kafka.bootstrap_servers, tmp_path)


def test_twenty_queries_on_one_log(queries, topic):
    topics = [topic(2) for _ in range(20)]
    frame = queries.input(600, 2, files=3)
    running = [queries.start(frame, name, availableNow=True) for name in topics]
    for query in running:
        query.awaitTermination()
    for name in topics:
        assert_exactly_once(queries.bootstrap_servers, name, map(str, range(600)))


def test_two_hundred_sink_partitions(queries, topic):
    name = topic(8)
    queries.start(queries.input(4000, 200, files=2), name, availableNow=True).awaitTermination()
    assert_exactly_once(queries.bootstrap_servers, name, map(str, range(4000)))


def test_batch_of_one_row_and_batch_of_two_million(queries, topic):
    one, many = topic(1), topic(4)
    queries.start(queries.input(1, 1), one, availableNow=True).awaitTermination()
    assert_exactly_once(queries.bootstrap_servers, one, ["0"])
    queries.start(queries.input(2_000_000, 4), many, availableNow=True).awaitTermination()
    seen = committed_values(queries.bootstrap_servers, many)
    assert len(seen) == 2_000_000
    assert len(set(seen.values())) == 2_000_000
