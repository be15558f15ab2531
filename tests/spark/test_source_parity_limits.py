"""Where a batch read starts, ends and is divided: as in Spark's own connector."""

import time

import pytest
from pyspark.errors import AnalysisException

from tests.spark import topics
from tests.spark.topics import T0

# Behind the time of every marker, which the broker sets; a broker takes up to an hour.
LATER = int(time.time() * 1000) + 1_800_000


@pytest.fixture(scope="module")
def blocked(kafka):
    """Partition 0: 3 records and their marker, 2 of an open transaction, and 1 at a later time.
    Partition 1: 2 records.
    """
    servers = kafka.bootstrap_servers
    name = topics.create(servers, 2)
    topics.transact(topics.transactional(servers), name, topics.numbered(3))
    with topics.open_transaction(servers, name, topics.numbered(2)):
        late = {"value": b"late", "timestamp": LATER}
        topics.fill(servers, name, [*topics.numbered(2, 1), late])
        yield name


@pytest.mark.parametrize(
    ("start", "end", "rows"),
    [
        ("earliest", {"0": 3, "1": -1, "2": -1}, 33),
        ({"0": -2, "1": 29, "2": -2}, "latest", 11),
        ({"0": 4, "1": -2, "2": 0}, {"0": 10, "1": 7, "2": 0}, 13),
        ({"0": 10, "1": 30, "2": 0}, {"0": -1, "1": -1, "2": -1}, 0),
    ],
)
def test_offsets(peers, edge, start, end, rows):
    starts = start if isinstance(start, str) else {edge: start}
    ends = end if isinstance(end, str) else {edge: end}
    assert peers.same(subscribe=edge, startingOffsets=starts, endingOffsets=ends) == rows


def test_end_behind_the_last_record_where_a_loss_is_allowed(peers, edge):
    """There, a task waits for the record that is not there."""
    given = {"failOnDataLoss": "false", "kafkaConsumer.pollTimeoutMs": "1000"}
    ends = {edge: {"0": 11, "1": 1, "2": 0}}
    assert peers.same(subscribe=edge, endingOffsets=ends, **given) == 11


@pytest.mark.parametrize(
    ("options", "rows"),
    [
        ({"startingTimestamp": 999}, 5),
        ({"startingOffsetsByTimestamp": (1001, 291)}, 3),  # no record of partition 1 is as late
        ({"endingTimestamp": 100}, 15),
        ({"endingTimestamp": 9_999_999}, 40),
        ({"endingOffsetsByTimestamp": (3, 300)}, 33),
        ({"startingTimestamp": 4, "endingTimestamp": 1001}, 32),
        # A timestamp for all counts more than one for each partition, and both more than offsets.
        ({"startingTimestamp": 4, "startingOffsetsByTimestamp": (0, 0), "startingOffsets": 1}, 35),
        ({"startingOffsetsByTimestamp": (1500, 280), "startingOffsets": 1}, 4),
        ({"endingTimestamp": 4, "endingOffsetsByTimestamp": (0, 0), "endingOffsets": 1}, 5),
        ({"endingOffsetsByTimestamp": (1500, 280), "endingOffsets": 1}, 36),
    ],
)
def test_timestamps_and_what_counts_more(peers, edge, options, rows):
    given = {"startingOffsetsByTimestampStrategy": "latest"}
    for name, value in options.items():
        if name.endswith("ByTimestamp"):
            given[name] = {edge: {"0": T0 + value[0], "1": T0 + value[1], "2": T0}}
        elif name.endswith("Timestamp"):
            given[name] = str(T0 + value)
        else:
            given[name] = {edge: {"0": value, "1": value, "2": 0}}
    assert peers.same(subscribe=edge, **given) == rows


@pytest.mark.parametrize(
    ("isolation", "option", "rows"),
    [
        ("read_committed", "startingTimestamp", 0),
        ("read_uncommitted", "startingTimestamp", 1),
        ("read_committed", "endingTimestamp", 5),
        ("read_uncommitted", "endingTimestamp", 7),
    ],
)
def test_time_of_a_record_behind_an_open_transaction(peers, blocked, isolation, option, rows):
    given = {option: str(LATER), "startingOffsetsByTimestampStrategy": "latest"}
    assert peers.same(subscribe=blocked, isolation=isolation, **given) == rows


def test_number_of_tasks(peers, edge):
    """Equal where every partition has records. One without costs no task here, there it does."""
    filled = {"assign": {edge: [0, 1]}}
    assert peers.tasks(**filled) == [2, 2]
    assert peers.tasks(**filled, minPartitions="8") == [8, 8]
    assert peers.tasks(subscribe=edge) == [3, 2]
    # There it has no effect on a batch read unless minPartitions asks for more tasks as well.
    assert peers.tasks(**filled, maxRecordsPerPartition="7") == [2, 7]


@pytest.mark.parametrize("options", [{"maxRecordsPerPartition": "7"}, {"minPartitions": "12"}])
def test_rows_of_divided_partitions(peers, edge, options):
    assert peers.same(subscribe=edge, includeHeaders="true", **options) == 40


@pytest.mark.parametrize(
    "options",
    [
        {"startingOffsets": "latest"},
        {"startingOffsets": {"0": 11, "1": 0, "2": 0}},
        {"startingTimestamp": str(T0)},  # the empty partition has no such record
    ],
)
def test_what_neither_reads(peers, edge, options):
    peers.refuse(
        subscribe=edge, **{k: v if isinstance(v, str) else {edge: v} for k, v in options.items()}
    )


@pytest.mark.parametrize(
    ("options", "rows", "refusal"),
    [
        ({"assign": [0, 7]}, 10, "-7 does not exist"),
        ({"startingOffsetsByTimestamp": {"0": -2, "1": -1, "2": -1}}, 10, "-2 of partition"),
    ],
)
def test_what_only_sparks_connector_reads(peers, edge, options, rows, refusal):
    """There, a partition that is not there is left out, and a time below zero is an offset."""
    given = {name: {edge: value} for name, value in options.items()}
    given |= {} if "assign" in given else {"subscribe": edge}
    assert peers.frame("kafka", **given).count() == rows
    with pytest.raises(AnalysisException, match=refusal):
        peers.frame("txnkafka", **given).count()
