"""A batch read gives the same frame as Spark's own connector does with the same options."""

import pytest

from spark_eos.testing import EmbeddedKafka
from tests.spark import topics
from tests.spark.peers import Peers


@pytest.fixture(scope="module")
def appended(kafka, edge):
    """A topic named like the first, with the broker's times: 5 records."""
    servers = kafka.bootstrap_servers
    name = topics.create(servers, name=f"{edge}-2", message_timestamp_type="LogAppendTime")
    topics.fill(servers, name, topics.numbered(5))
    return name


@pytest.fixture(scope="module")
def transactions(kafka):
    """Partition 0: 3 records, marker; 4 aborted, marker; 2, marker; 1 open; 1 without transaction.
    Partition 1: 2 records, then 3 aborted and a marker.
    """
    servers = kafka.bootstrap_servers
    name = topics.create(servers, 2)
    producer = topics.transactional(servers)
    topics.transact(producer, name, topics.numbered(3) + topics.numbered(2, 1))
    topics.transact(producer, name, topics.numbered(4) + topics.numbered(3, 1), commit=False)
    topics.transact(producer, name, topics.numbered(2))
    with topics.open_transaction(servers, name, topics.numbered(1)):
        topics.fill(servers, name, topics.numbered(1, first=99))
        yield name


@pytest.fixture(scope="module")
def tiny(kafka):
    name = topics.create(kafka.bootstrap_servers)
    topics.fill_tiny(kafka.bootstrap_servers, name, 2000)
    return name


@pytest.fixture(scope="module")
def trimmed(kafka):
    """Partition 0: offsets 15 to 19. Partition 1: nothing is left. 2: 20 records."""
    servers = kafka.bootstrap_servers
    name = topics.create(servers, 3)
    topics.fill(servers, name, [r for p in range(3) for r in topics.numbered(20, p)])
    topics.trim(servers, name, {0: 15, 1: 20})
    return name


@pytest.fixture(scope="module")
def compacted(spark, tmp_path_factory):
    """On a broker of its own, whose cleaner does not wait; with the peers of that broker."""
    folder = tmp_path_factory.mktemp("compacting")
    with EmbeddedKafka(folder, properties={"log.cleaner.backoff.ms": "200"}) as cluster:
        name = topics.create_compacted(cluster.bootstrap_servers)
        yield name, Peers(spark, cluster.bootstrap_servers)


@pytest.mark.parametrize("headers", ["true", "false"])
def test_every_shape_of_record(peers, edge, headers):
    assert peers.same(subscribe=edge, includeHeaders=headers) == 40


def test_several_topics_by_name_and_by_pattern(peers, edge, appended):
    assert peers.same(subscribe=f"{edge}, {appended}", includeHeaders="true") == 45
    assert peers.same(subscribePattern=f"{edge}.*") == 45
    assert peers.same(subscribePattern=f"^{edge[:-1]}.$") == 40


def test_pattern_that_matches_a_part_of_the_name(peers, edge, appended):
    assert peers.same(subscribePattern=edge[3:]) == 45


def test_assigned_partitions(peers, edge, appended):
    assert peers.same(assign={edge: [1, 2], appended: [0]}) == 35


@pytest.mark.parametrize(("isolation", "rows"), [("read_committed", 7), ("read_uncommitted", 16)])
def test_aborted_and_open_transactions(peers, transactions, isolation, rows):
    assert peers.same(subscribe=transactions, isolation=isolation) == rows


@pytest.mark.parametrize(("isolation", "rows"), [("read_committed", 0), ("read_uncommitted", 2)])
def test_range_that_ends_in_markers_only(peers, transactions, isolation, rows):
    """Partition 0 from a marker over aborted records to their marker, 1 from there to the end."""
    assert (
        peers.same(
            subscribe=transactions,
            isolation=isolation,
            startingOffsets={transactions: {"0": 6, "1": 6}},
            endingOffsets={transactions: {"0": 9, "1": -1}},
        )
        == rows
    )


def test_thousands_of_tiny_transactions(peers, tiny):
    assert peers.same(subscribe=tiny) == 2000
    assert peers.same(subscribe=tiny, isolation="read_uncommitted", minPartitions="7") == 2000


def test_tiny_transactions_in_part(peers, tiny):
    """From one odd offset to another, in tasks that begin and end anywhere."""
    starts, ends = {tiny: {"0": 1001}}, {tiny: {"0": 1999}}
    rows = peers.same(subscribe=tiny, startingOffsets=starts, endingOffsets=ends, minPartitions="9")
    assert 0 < rows < 998


def test_trimmed_topic(peers, trimmed):
    assert peers.same(subscribe=trimmed) == 25
    starts = {"0": 3, "1": 20, "2": -2}
    lost = {"subscribe": trimmed, "startingOffsets": {trimmed: starts}}
    assert peers.same(failOnDataLoss="false", **lost) == 25
    peers.refuse(**lost)


def test_compacted_topic(compacted):
    name, peers = compacted
    assert peers.same(subscribe=name) == 11
    for start, end, rows in [(10, 50, 0), (20, 120, 2)]:
        starts, ends = {name: {"0": start}}, {name: {"0": end}}
        assert peers.same(subscribe=name, startingOffsets=starts, endingOffsets=ends) == rows


def test_empty_topic(peers, kafka):
    name = topics.create(kafka.bootstrap_servers, 2)
    assert peers.same(subscribe=name, includeHeaders="true") == 0
