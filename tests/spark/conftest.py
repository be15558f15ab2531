"""Frames written through the sink in the shared session."""

import uuid

import pytest

from tests.spark import topics
from tests.spark.peers import Peers


class Sink:
    """Runs streaming queries that write given rows, and tells where their log is."""

    def __init__(self, spark, kafka, folder):
        self.spark = spark
        self.bootstrap_servers = kafka.bootstrap_servers
        self.checkpoint = folder / "checkpoint"
        self._input = folder / "input"

    @property
    def log(self):
        return self.checkpoint / "transaction_state"

    def add(self, rows, schema):
        """One more file, so one more micro-batch."""
        frame = self.spark.createDataFrame(rows, schema).coalesce(1)
        frame.write.mode("append").parquet(str(self._input))

    def write(self, schema, **options):
        """Write every file that was not written yet, each as one micro-batch."""
        given = {
            "kafka.bootstrap.servers": self.bootstrap_servers,
            "checkpointLocation": str(self.checkpoint),
            "apiTimeoutMs": "15000",
        }
        given |= {name.replace("__", "."): value for name, value in options.items()}
        query = (
            self.spark.readStream.schema(schema)
            .option("maxFilesPerTrigger", 1)
            .parquet(str(self._input))
            .writeStream.format("txnkafka")
            .options(**{name: value for name, value in given.items() if value is not None})
            .queryName(f"q{uuid.uuid4().hex}")
            .trigger(availableNow=True)
            .start()
        )
        try:
            assert query.awaitTermination(120), "the query did not end"
        finally:
            query.stop()
        return query


@pytest.fixture
def sink(spark, kafka, tmp_path):
    return Sink(spark, kafka, tmp_path)


@pytest.fixture(scope="module")
def peers(spark, kafka):
    """The same read through both formats."""
    return Peers(spark, kafka.bootstrap_servers)


@pytest.fixture(scope="module")
def edge(kafka):
    """Partition 0: 10 records, the last one as early as the first. 1: 30 records. 2: empty."""
    return topics.create_edge(kafka.bootstrap_servers)
