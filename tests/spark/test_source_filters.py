"""Filters of a batch read that are pushed down: the same rows, and fewer that are fetched."""

import pytest
from pyspark.sql.functions import expr

from tests.spark import topics
from tests.spark.peers import assert_same, number_of_rows
from tests.spark.topics import T0

PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
ALL = 70


@pytest.fixture(scope="module")
def pair(kafka):
    """Two topics. One: partition 0 with 10 records, the last as early as the first, 1 with 30.
    The other: 30 records.
    """
    servers = kafka.bootstrap_servers
    one, other = topics.create(servers, 2), topics.create(servers)
    topics.fill(servers, one, topics.EDGE_RECORDS + topics.numbered(30, 1))
    topics.fill(servers, other, topics.numbered(30))
    return one, other


@pytest.fixture
def conf(spark):
    """Set settings of the session for one test."""
    before = {}

    def change(name, value):
        before.setdefault(name, spark.conf.get(name, None))
        spark.conf.set(name, value)

    yield change
    for name, value in before.items():
        spark.conf.unset(name) if value is None else spark.conf.set(name, value)


@pytest.fixture(scope="module")
def read(spark, kafka, pair):
    def frame(**options):
        given = {"kafka.bootstrap.servers": kafka.bootstrap_servers, "subscribe": ",".join(pair)}
        return spark.read.format("txnkafka").options(**given, **options).load()

    return frame


@pytest.fixture(scope="module")
def everything(read):
    """All records, read without push-down and kept."""
    return read().localCheckpoint()


@pytest.fixture
def check(conf, read, everything, pair):
    """Assert that the rows are as many as said and are those that the filter takes of everything,
    and that no more were fetched than said.
    """
    one, other = pair

    def check(condition, *, rows, given, **options):
        chosen = expr(condition.format(one=one, other=other))
        conf(PUSHDOWN, "true")
        pushed = read(**options).where(chosen)
        kept = pushed.localCheckpoint()
        assert fetched(pushed) == given
        expected = everything.where(chosen)
        assert_same(kept, expected)
        assert number_of_rows(kept) == rows

    return check


def fetched(frame):
    """How many rows the source gave to Spark in the last action on this frame."""
    nodes, scans = [frame._jdf.queryExecution().executedPlan()], []
    while nodes:
        node = nodes.pop()
        if node.nodeName().startswith("BatchScan"):
            scans.append(node.metrics().apply("numOutputRows").value())
        children = node.children()
        nodes += [children.apply(i) for i in range(children.size())]
    assert len(scans) == 1
    return scans[0]


def at(millis):
    """A time as SQL writes it, whatever the time zone of the session is."""
    return f"timestamp_millis({T0 + millis})"


@pytest.mark.parametrize(
    ("condition", "rows", "given"),
    [
        ("partition = 1", 30, 30),
        ("partition < 1 and topic = '{one}'", 10, 10),
        ("topic in ('{other}', 'none')", 30, 30),
        ("offset >= 25", 10, 10),
        ("offset > 3 and offset < 12", 22, 22),
        ("offset in (2, 8)", 6, 21),  # from the first to the last
        ("partition = 1 and offset <= 4 and topic = '{one}'", 5, 5),
        ("offset > 20 and offset < 5", 0, 0),
    ],
)
def test_place(check, condition, rows, given):
    check(condition, rows=rows, given=given)


@pytest.mark.parametrize(
    ("condition", "rows", "given"),
    [
        # Of partition 0 the last record is older than the five before it, and is fetched.
        (f"timestamp >= {at(200)}", 24, 25),
        (f"timestamp > {at(280)}", 6, 9),
        (f"timestamp = {at(1001)}", 1, 3),
        (f"timestamp >= {at(1501)}", 0, 0),
        # Older records can follow later ones, so that this narrows nothing.
        (f"timestamp < {at(5)}", 8, ALL),
    ],
)
def test_time(conf, check, condition, rows, given):
    conf("spark.sql.session.timeZone", "America/New_York")
    check(condition, rows=rows, given=given)


@pytest.mark.parametrize(
    ("condition", "rows"),
    [
        ("partition = 1 or offset < 2", 34),
        ("not (topic = '{one}')", 30),
        ("key = X'6B'", 1),
    ],
)
def test_what_narrows_nothing_is_left_to_spark(check, condition, rows):
    check(condition, rows=rows, given=ALL)


def test_filters_and_options_narrow_together(check, pair):
    """The filter asks for less than the options give, so the rows are those of the filter."""
    one, other = pair
    start = f'{{"{one}": {{"0": 4, "1": 20}}, "{other}": {{"0": 28}}}}'
    check("offset >= 28", rows=4, given=4, startingOffsets=start, minPartitions="5")


def test_push_down_is_off_by_default(spark, read):
    assert spark.conf.get(PUSHDOWN) == "false"
    frame = read().where("partition = 1")
    assert len(frame.collect()) == 30
    assert fetched(frame) == ALL
