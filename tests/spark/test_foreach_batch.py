"""`foreachBatch` with an idempotent batch write: the same checkpoint again, and a new one."""

import pytest

import spark_eos
from spark_eos.errors import OptionError
from tests.chaos.oracle import assert_exactly_once, committed_values


class Stream:
    """Files to a topic, micro-batch by micro-batch, with any checkpoint."""

    def __init__(self, spark, kafka, topic, folder, options):
        self.servers, self.topic, self.folder = kafka.bootstrap_servers, topic, folder
        self._spark, self._options = spark, options

    def add(self, first, last):
        rows = self._spark.range(first, last, numPartitions=2)
        rows.write.mode("append").parquet(str(self.folder / "rows"))

    def run(self, checkpoint):
        """All files in one micro-batch, if this checkpoint has seen none of them."""
        rows = self._spark.readStream.schema("id long").parquet(str(self.folder / "rows"))
        query = rows.writeStream.foreachBatch(self._write).trigger(availableNow=True)
        query = query.option("checkpointLocation", str(self.folder / checkpoint)).start()
        assert query.awaitTermination(180), "the query did not end"

    def forget_commit(self, checkpoint, batch_id):
        """As after a crash behind the write: Spark runs the batch again."""
        for file in (self.folder / checkpoint / "commits").glob(f"*{batch_id}*"):
            file.unlink()

    def values(self):
        return sorted(map(int, committed_values(self.servers, self.topic).values()))

    def _write(self, batch, batch_id):
        (
            batch.selectExpr("string(id) AS value")
            .write.format("txnkafka")
            .mode("append")
            .option("kafka.bootstrap.servers", self.servers)
            .options(topic=self.topic, transactionLog=str(self.folder / "log"))
            .options(**self._options(batch, batch_id, self.topic))
            .save()
        )


def plain_name(batch, batch_id, topic):
    """Of the test's own: an application has one log on a cluster."""
    return {"txnAppId": f"stream-{topic}", "txnVersion": batch_id}


def name_with_query_id(batch, batch_id, _topic):
    return spark_eos.txn_options(batch, batch_id, name="stream")


@pytest.fixture
def stream(request, spark, kafka, topic, tmp_path):
    return Stream(spark, kafka, topic(2), tmp_path, request.param)


@pytest.mark.parametrize("stream", [plain_name, name_with_query_id], indirect=True)
def test_batch_that_runs_again_on_its_checkpoint_is_written_once(stream):
    stream.add(0, 40)
    stream.run("checkpoint")
    stream.forget_commit("checkpoint", 0)
    stream.run("checkpoint")
    stream.add(40, 60)
    stream.run("checkpoint")
    assert_exactly_once(stream.servers, stream.topic, [str(n) for n in range(60)])


@pytest.mark.parametrize("stream", [plain_name], indirect=True)
def test_new_checkpoint_under_a_plain_name_is_refused(stream):
    """Its batch 0 has other rows than the version 0 that is written."""
    stream.add(0, 20)
    stream.run("old")
    stream.add(20, 40)
    with pytest.raises(Exception, match=r"NonDeterministicReplayError: version 0 .* 'stream-"):
        stream.run("new")
    assert stream.values() == list(range(20))


@pytest.mark.parametrize("stream", [name_with_query_id], indirect=True)
def test_new_checkpoint_under_a_name_with_the_query_id_writes_every_row_once(stream):
    stream.add(0, 20)
    stream.run("old")
    stream.add(20, 40)
    stream.run("new")
    assert stream.values() == sorted([*range(20), *range(40)])
    stream.forget_commit("new", 0)
    stream.run("new")
    stream.run("old")
    assert stream.values() == sorted([*range(40), *range(40)])


def test_outside_of_foreach_batch_there_is_no_query(spark):
    with pytest.raises(OptionError, match="no streaming query runs in this thread"):
        spark_eos.txn_options(spark.range(1), 0, name="stream")
