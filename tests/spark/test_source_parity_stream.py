"""A streaming read gives the same rows in the same micro-batches as Spark's own connector."""

import json

import pytest

from tests.spark import topics
from tests.spark.peers import FORMATS, QUICK, assert_same

TIMEOUT_S = 60


class Stream:
    """A query that copies topics into a folder, and can be run again and again."""

    def __init__(self, spark, servers, folder, **options):
        self._spark = spark
        self._folder = folder
        self._options = {
            "kafka.bootstrap.servers": servers,
            "kafka.isolation.level": "read_committed",
            "startingOffsets": "earliest",
            "includeHeaders": "true",
            **options,
        }

    def start(self, name):
        """Go on with what is available now, through this format."""
        return (
            self._spark.readStream.format(name)
            .options(**self._options, **QUICK[name])
            .load()
            .writeStream.format("parquet")
            .option("checkpointLocation", str(self._folder / "checkpoint"))
            .option("path", str(self._folder / "rows"))
            .trigger(availableNow=True)
            .start()
        )

    def run(self, name):
        """Start, wait, and return where each micro-batch ended."""
        return finish(self.start(name))

    def rows(self):
        return self._spark.read.parquet(str(self._folder / "rows"))

    def last_offsets(self):
        """The newest offsets in the checkpoint, as they are stored."""
        files = (self._folder / "checkpoint" / "offsets").iterdir()
        return max((f for f in files if f.name.isdigit()), key=lambda f: int(f.name)).read_text()

    def offsets(self):
        """Topic, partition and offset of every row, sorted."""
        found = self.rows().select("topic", "partition", "offset").collect()
        return sorted(tuple(row) for row in found)


def finish(query):
    try:
        assert query.awaitTermination(TIMEOUT_S), "the query did not end"
    finally:
        query.stop()
    return [_offsets(p["sources"][0]["endOffset"]) for p in query.recentProgress]


def _offsets(end):
    """Without the ids of topics, which Spark's own source does not write."""
    return {topic: partitions for topic, partitions in json.loads(end).items() if partitions}


@pytest.fixture
def streams(spark, kafka, tmp_path):
    """One query for each format, with the same options."""

    def make(**options):
        return {
            name: Stream(spark, kafka.bootstrap_servers, tmp_path / name, **options)
            for name in FORMATS
        }

    return make


def run_both(streams):
    """Run both side by side; assert equal batches, and return where they ended."""
    running = {name: stream.start(name) for name, stream in streams.items()}
    peer, ours = (finish(running[name]) for name in FORMATS)
    assert ours == peer
    return ours


def same(streams):
    """Run both; assert equal batches and equal rows; return where the batches ended."""
    ends = run_both(streams)
    assert_same(streams["txnkafka"].rows(), streams["kafka"].rows())
    return ends


def test_limited_batches_end_at_the_same_offsets(streams, kafka):
    """And hold records of every shape. Of 10, 30, 0 and 4 records the second partition's part is
    22 * 30 / 44, which is 15, but 14 in the floating point of Spark's connector.
    """
    one, other = topics.create_edge(kafka.bootstrap_servers), topics.create(kafka.bootstrap_servers)
    topics.fill(kafka.bootstrap_servers, other, topics.numbered(4))
    both = streams(subscribe=f"{one},{other}", maxOffsetsPerTrigger="22")
    ends = same(both)
    assert len(ends) >= 3
    assert ends[-1] == {one: {"0": 10, "1": 30, "2": 0}, other: {"0": 4}}
    assert len(both["txnkafka"].offsets()) == 44


def test_restart_after_transactions_ended_and_a_partition_came(streams, kafka):
    servers = kafka.bootstrap_servers
    name = topics.create(servers, 2)
    producer = topics.transactional(servers)
    topics.transact(producer, name, topics.numbered(3) + topics.numbered(2, 1))
    topics.transact(producer, name, topics.numbered(4) + topics.numbered(3, 1), commit=False)
    both = streams(subscribe=name)
    with topics.open_transaction(servers, name, topics.numbered(2)) as commit:
        topics.fill(servers, name, topics.numbered(1, first=99))
        assert same(both) == [{name: {"0": 9, "1": 7}}]
        assert len(both["txnkafka"].offsets()) == 5
        commit()
    topics.add_partitions(servers, name, 3)
    topics.fill(servers, name, topics.numbered(6, 2))
    assert same(both) == [{name: {"0": 13, "1": 7, "2": 6}}]
    assert len(both["txnkafka"].offsets()) == 5 + 3 + 6


def test_latest_start_of_a_query_that_found_nothing_is_kept(streams, kafka):
    name = topics.create(kafka.bootstrap_servers)
    topics.fill(kafka.bootstrap_servers, name, topics.numbered(3))
    both = streams(subscribe=name, startingOffsets="latest")
    run_both(both)
    topics.fill(kafka.bootstrap_servers, name, topics.numbered(2))
    same(both)
    assert both["txnkafka"].offsets() == [(name, 0, 3), (name, 0, 4)]


def test_checkpoint_goes_from_one_format_to_the_other_and_back(streams, kafka):
    name = topics.create(kafka.bootstrap_servers, 2)
    stream = streams(subscribe=name, maxOffsetsPerTrigger="4")["kafka"]
    for turn, (format_name, has_id) in enumerate(
        [("kafka", False), ("txnkafka", True), ("kafka", False)]
    ):
        topics.fill(kafka.bootstrap_servers, name, topics.numbered(5) + topics.numbered(2, 1))
        ends = stream.run(format_name)
        assert ends[-1] == {name: {"0": 5 * (turn + 1), "1": 2 * (turn + 1)}}
        assert (f'"{name}#' in stream.last_offsets()) is has_id
    everything = [(name, 0, i) for i in range(15)] + [(name, 1, i) for i in range(6)]
    assert stream.offsets() == everything


def test_checkpoint_inside_of_an_open_transaction_waits_there(spark, kafka, tmp_path):
    """Spark's own connector reads into it by default. Nothing is lost, and nothing comes twice."""
    servers = kafka.bootstrap_servers
    name = topics.create(servers)
    topics.fill(servers, name, topics.numbered(3))
    everything, committed = (
        Stream(spark, servers, tmp_path, subscribe=name, **{"kafka.isolation.level": level})
        for level in ("read_uncommitted", "read_committed")
    )
    with topics.open_transaction(servers, name, topics.numbered(2, first=3)) as commit:
        assert everything.run("kafka") == [{name: {"0": 5}}]
        topics.fill(servers, name, topics.numbered(1, first=5))
        committed.run("txnkafka")
        assert committed.offsets() == [(name, 0, i) for i in range(5)]
        commit()
    assert committed.run("txnkafka")[-1] == {name: {"0": 7}}
    assert committed.offsets() == [(name, 0, i) for i in range(6)]
