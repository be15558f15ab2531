"""Micro-batches of a query to another topic, once, however often the job is run."""

from collections import Counter
from types import SimpleNamespace

import pytest

from spark_eos._log import TransactionLog
from spark_eos._options import batch_write_options
from spark_eos._protocol.transactions.ownership import Token
from tests.jobs.modules import program


@pytest.mark.slow
def test_replay(jobs, spark, topic):
    source, output, target = topic(2), topic(2), topic(2)
    log = write_batches(jobs, spark, source, output)
    file = jobs.file(
        "replay",
        **{"subscribe: invoices,invoices.ch": f"subscribe: {output}"},
        **{"invoices.replayed": target, "transactionLog": "transactionLog"},
    )
    text = file.read_text()
    old = "${DATA:-/tmp/spark-eos}/checkpoints/invoices/transaction_state"
    assert old in text
    file.write_text(text.replace(old, log))
    jobs.run("replay", file, FIRST_BATCH="1", LAST_BATCH="2")
    for _ in range(2):
        jobs.run("replay", file, FIRST_BATCH="1", LAST_BATCH="3")
    found = Counter(int(value) for _, value, _ in jobs.records(target))
    assert found == Counter(range(100, 400))
    assert len({key for key, _, _ in jobs.records(target)}) == 10

    run = jobs.run("replay", file, FIRST_BATCH="4", LAST_BATCH="9", expect=2)
    assert "micro-batch 5 of query" in run.text()


def test_replay_that_the_first_release_began_goes_on_under_its_name(tmp_path):
    module, model = program("replay")
    sink = {"kafka.bootstrap.servers": "localhost:9092", "topic": "t"}
    sink["TRANSACTIONLOG"] = str(tmp_path / "log")  # as Spark, a file does not know case
    job = model.model_construct(
        name="again",
        batches=SimpleNamespace(first=2, last=5),
        sink=SimpleNamespace(options=sink),
    )
    assert module.application(job) == "again"
    older = batch_write_options({**sink, "txnAppId": "again:2-5", "txnVersion": "0"}).query_id
    log = TransactionLog.open(str(tmp_path / "log"))
    token = Token(before=None, mark=2, place=1)
    assert log.start(older, 7, token, start_mark=2)
    assert module.application(job) == "again:2-5"
    job.batches.last = 6
    assert module.application(job) == "again"


def write_batches(jobs, spark, source, output):
    """Five micro-batches of a hundred rows; returns the query's log."""
    checkpoint = jobs.folder / "query"
    for batch in range(5):
        numbers = range(batch * 100, batch * 100 + 100)
        jobs.produce(source, [(str(n % 10), str(n)) for n in numbers])
        (
            spark.readStream.format("txnkafka")
            .option("kafka.bootstrap.servers", jobs.bootstrap_servers)
            .option("subscribe", source)
            .option("startingOffsets", "earliest")
            .load()
            .writeStream.format("txnkafka")
            .option("kafka.bootstrap.servers", jobs.bootstrap_servers)
            .option("topic", output)
            .option("checkpointLocation", str(checkpoint))
            .trigger(availableNow=True)
            .start()
            .awaitTermination()
        )
    return str(checkpoint / "transaction_state")
