"""isolation.level snapshot: whole micro-batches of a query, or nothing of them."""

import re
import time
import uuid
from pathlib import Path

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from spark_eos._log import TransactionLog
from tests.chaos.oracle import assert_none_open

SCHEMA = "value string, partition int"


class Output:
    """A query that wrote numbered micro-batches to two partitions, and readers of it."""

    def __init__(self, spark, sink, topic):
        self.spark, self.sink, self.topic = spark, sink, topic
        self.written = []

    def write(self, held=()):
        """One more micro-batch, of six rows in both partitions; all can be read, but for those of
        partitions that somebody else holds back.
        """
        number = len(self.written)
        rows = [(f"{number}-{i}", i % 2) for i in range(6)]
        self.sink.add(rows, SCHEMA)
        self.sink.write(SCHEMA, topic=self.topic)
        assert_none_open(self.sink.bootstrap_servers, self.topic, besides=held)
        self.written.append({value for value, _ in rows})

    def options(self, **options):
        given = {
            "kafka.bootstrap.servers": self.sink.bootstrap_servers,
            "subscribe": self.topic,
            "isolation.level": "snapshot",
            "transactionLog": str(self.sink.log),
        } | {k.replace("__", "."): str(v) for k, v in options.items() if v is not None}
        if given["isolation.level"] != "snapshot":
            del given["transactionLog"]
        return given

    def read(self, **options):
        frame = self.spark.read.format("txnkafka").options(**self.options(**options)).load()
        return {row.value.decode() for row in frame.collect()}


@pytest.fixture
def output(spark, sink, topic):
    found = Output(spark, sink, topic(2))
    for _ in range(3):
        found.write()
    return found


@pytest.fixture
def foreign(output):
    """A producer of somebody else, with a transaction open in partition 1."""
    settings = {"bootstrap.servers": output.sink.bootstrap_servers}
    producer = Producer(settings | {"transactional.id": uuid.uuid4().hex})
    producer.init_transactions(20)
    producer.begin_transaction()
    producer.produce(output.topic, b"foreign", partition=1)
    assert producer.flush(20) == 0
    yield producer
    producer.abort_transaction(20)


def test_batch_that_is_visible_in_part_is_not_seen(output, foreign):
    """The open transaction holds partition 1 back for every reader."""
    before = set().union(*output.written)
    output.write(held=[1])
    seen = output.read(isolation__level="read_committed")
    assert before < seen < before | output.written[3]  # a part of it: the difference is real
    assert output.read() == before
    foreign.abort_transaction(20)
    assert_none_open(output.sink.bootstrap_servers, output.topic)
    foreign.begin_transaction()
    assert output.read() == before | output.written[3]


def test_last_batch_is_seen_before_the_log_says_that_it_is_complete(output):
    """Its completion rides on the next decision, which may never come."""
    assert output.read() == set().union(*output.written)


def test_example_of_the_documentation_runs(output):
    page = (Path(__file__).parents[2] / "docs" / "source.md").read_text()
    (example,) = re.findall(r"```python\n(third = .*?)```", page, re.DOTALL)
    for name, place in {
        "broker:9092": output.sink.bootstrap_servers,
        '"invoices"': f'"{output.topic}"',
        "/data/checkpoints/invoices/transaction_state": str(output.sink.log),
    }.items():
        example = example.replace(name, place)
    names = {"spark": output.spark}
    exec(example, names)
    assert {row.value.decode() for row in names["third"].collect()} == output.written[2]


def test_batch_that_wrote_nothing_is_read_as_nothing(output):
    output.sink.add([], SCHEMA)
    output.sink.write(SCHEMA, topic=output.topic)
    output.write()
    assert output.read(startingBatch=2, endingBatch=4) == output.written[2] | output.written[3]
    assert output.read(startingBatch=3, endingBatch=3) == set()


def test_just_some_batches_are_read(output):
    assert output.read(startingBatch=1, endingBatch=1) == output.written[1]
    assert output.read(startingBatch=1) == output.written[1] | output.written[2]
    assert output.read(endingBatch=0) == output.written[0]
    with pytest.raises(Exception, match=r"micro-batch 3 of query .* Complete there: 0 to 2"):
        output.read(startingBatch=2, endingBatch=3)


def test_records_of_others_between_those_of_a_batch_are_reported(output):
    producer = Producer({"bootstrap.servers": output.sink.bootstrap_servers})
    producer.produce(output.topic, b"foreign", partition=0)
    assert producer.flush(20) == 0
    output.write()
    assert output.read(startingBatch=3) == output.written[3]
    with pytest.raises(Exception, match="others write to this topic too"):
        output.read(startingBatch=2, endingBatch=3)


def test_records_that_retention_removed_are_reported(output):
    admin = AdminClient({"bootstrap.servers": output.sink.bootstrap_servers})
    place = TopicPartition(output.topic, 0, 2)
    admin.delete_records([place])[place].result(20)
    with pytest.raises(Exception, match="DataLossError"):
        output.read(startingBatch=0)
    assert output.read(startingBatch=1) == output.written[1] | output.written[2]


def test_stream_takes_whole_batches_also_when_it_is_limited(output, foreign, tmp_path):
    """And leaves out the one that cannot be read whole."""
    output.write(held=[1])
    batches = []
    rows = output.spark.readStream.format("txnkafka").options(
        **output.options(startingOffsets="earliest", maxOffsetsPerTrigger=1)
    )
    query = (
        rows.load()
        .selectExpr("string(value) AS value")
        .writeStream.foreachBatch(lambda f, _: batches.append({r.value for r in f.collect()}))
        .option("checkpointLocation", str(tmp_path / "reader"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(90)
    assert [b for b in batches if b] == output.written[:3]


class Reader:
    """A stream over the output, and the rows of each of its micro-batches."""

    def __init__(self, output, checkpoint, **options):
        self.batches = []
        frame = output.spark.readStream.format("txnkafka").options(**output.options(**options))
        self._writer = (
            frame.load()
            .selectExpr("string(value) AS value")
            .writeStream.foreachBatch(self._take)
            .option("checkpointLocation", str(checkpoint))
        )

    def _take(self, frame, _batch_id):
        self.batches.append([row.value for row in frame.collect()])

    @property
    def rows(self):
        return sorted(value for batch in self.batches for value in batch)

    def run_over_what_is_there(self):
        query = self._writer.trigger(availableNow=True).start()
        try:
            assert query.awaitTermination(90), "the reader did not end"
        finally:
            query.stop()

    def start(self):
        return self._writer.start()


def wait_until(is_so, query, what):
    deadline = time.monotonic() + 90
    while not is_so():
        assert query.exception() is None, query.exception()
        assert time.monotonic() < deadline, f"waited in vain: {what}"
        time.sleep(0.1)


@pytest.fixture
def unwritten(spark, sink, topic):
    """A query that has not run yet; its topic has a record of somebody else."""
    found = Output(spark, sink, topic(2))
    producer = Producer({"bootstrap.servers": sink.bootstrap_servers})
    producer.produce(found.topic, b"foreign", partition=1)
    assert producer.flush(20) == 0
    return found


@pytest.mark.parametrize("start", ["earliest", "latest"])
def test_reader_that_is_started_before_the_writer_has_each_row_once(unwritten, tmp_path, start):
    reader = Reader(unwritten, tmp_path / "reader", startingOffsets=start)
    query = reader.start()
    try:
        waiting = "Waiting for data to arrive"
        wait_until(lambda: query.status["message"] == waiting and reader.batches, query, waiting)
        assert reader.rows == []
        unwritten.write()
        unwritten.write()
        written = {*unwritten.written[0], *unwritten.written[1]}
        written |= {"foreign"} if start == "earliest" else set()
        wait_until(lambda: len(reader.rows) >= len(written), query, "all rows")
        query.processAllAvailable()
    finally:
        query.stop()
    assert reader.rows == sorted(written)


def test_run_over_what_is_there_ends_without_a_writer_and_goes_on_with_it(unwritten, tmp_path):
    reader = Reader(unwritten, tmp_path / "reader", startingOffsets="latest")
    reader.run_over_what_is_there()
    assert reader.rows == []
    unwritten.write()
    reader.run_over_what_is_there()
    assert reader.rows == sorted(unwritten.written[0])


def test_batch_read_of_a_log_without_a_query_is_empty(unwritten):
    TransactionLog.open(str(unwritten.sink.log))
    assert unwritten.read() == set()
    with pytest.raises(Exception, match=r"micro-batch 0 of the query .* Complete there: none"):
        unwritten.read(startingBatch=0)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"transactionLog": "/nowhere"}, "is no Delta table"),
        ({"queryId": "x"}, "queryId 'x' is not in the transaction log"),
        ({"startingBatch": 2, "endingBatch": 1}, "startingBatch 2 is after endingBatch 1"),
        (
            {"startingBatch": 1, "startingOffsets": "earliest"},
            "cannot be combined with startingBatch",
        ),
        ({"isolation__level": "read_committed", "startingBatch": 1}, "needs isolation.level snap"),
    ],
)
def test_mistake_is_named(output, options, text):
    with pytest.raises(Exception, match=text):
        output.read(**options)
