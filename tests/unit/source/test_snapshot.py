"""Which micro-batches are read: those that are asked for, or an error and never a part of them."""

from dataclasses import replace

import pytest

from spark_eos._options import batch_options
from spark_eos._protocol.offsets.snapshot import BatchOutput
from spark_eos._protocol.offsets.stream_position import StreamPosition
from spark_eos._protocol.offsets.topic_partition import TopicPartition
from spark_eos._protocol.transactions.fate import Fate
from spark_eos._session import ReadSession
from spark_eos._source.batch_offsets import plan_ranges
from spark_eos._source.filters import Pushed
from spark_eos._source.snapshot import Snapshot
from spark_eos.errors import DataLossError, OptionError, TopicReplacedError
from tests.unit.log.builders import OTHER, QUERY, at, row
from tests.unit.source.builders import Brokers, Clock, Topics, read_session, stream, stream_with_ids


class Logged(Snapshot):
    """The output of a query whose log has these batches."""

    def __init__(self, *batch_ids):
        self._query_id = "q"
        self._batches = [
            BatchOutput(batch_id=i, partitions=(), pending=(), aborted=False) for i in batch_ids
        ]

    def _look(self):
        """Nothing is new in the log."""


def test_batch_whose_topic_was_replaced_is_not_read():
    logged = Logged(0, 1, 2)
    logged._batches[1] = replace(logged._batches[1], replaced=("orders",))
    assert ids(logged, 2, 2) == [2]
    with pytest.raises(TopicReplacedError, match=r"topic 'orders' .* micro-batch 1 of query q"):
        ids(logged, 0, 2)


def ids(logged, first, last):
    return [b.batch_id for b in logged.batches(first, last)]


@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [
        (None, 3, [0, 1, 3]),  # 2 wrote nothing
        (None, 0, [0]),
        (2, None, [3, 4]),
        (2, 2, []),
        (4, None, [4]),
        (0, 4, [0, 1, 3, 4]),
    ],
)
def test_batches_of_a_log_that_has_them_all(first, last, expected):
    assert ids(Logged(0, 1, 3, 4), first, last) == expected


@pytest.mark.parametrize("last", [3, 5, 7, 9])
def test_start_that_the_log_does_not_have_any_more(last):
    """They expired, or wrote nothing: the log cannot tell, so the reader has to."""
    with pytest.raises(OptionError, match=r"query q.*begins with micro-batch 5.*startingBatch"):
        ids(Logged(*range(5, 10)), None, last)


@pytest.mark.parametrize(
    ("batch_ids", "first", "last", "text"),
    [
        (range(5, 10), 3, None, "micro-batch 3 .*Complete there: 5 to 9"),
        (range(5, 10), 3, 7, "micro-batch 3 .*Complete there: 5 to 9"),
        (range(5, 10), 100, None, "micro-batch 100 .*Complete there: 5 to 9"),
        (range(5, 10), 10, None, "micro-batch 10 .*Complete there: 5 to 9"),
        (range(5, 10), 100, 100, "micro-batch 100 .*Complete there: 5 to 9"),
        (range(10), None, 10, "micro-batch 10 .*Complete there: 0 to 9"),
        ((), 0, None, "micro-batch 0 .*Complete there: none"),
        ((), None, 7, "micro-batch 0 .*Complete there: none"),
    ],
)
def test_batch_that_is_not_there(batch_ids, first, last, text):
    with pytest.raises(OptionError, match=text):
        ids(Logged(*batch_ids), first, last)


class Writer:
    """The log of queries that start after their reader, as `TransactionLog` shows it."""

    def __init__(self, monkeypatch):
        self.rows = None
        self.committed = True
        self.version = 0
        monkeypatch.setattr(ReadSession, "open_log", self.existing)
        monkeypatch.setattr(ReadSession, "has_log", lambda *_: self.rows is not None)
        monkeypatch.setattr(Brokers, "fates", self._fates)

    def existing(self, location):
        if self.rows is None:
            raise OptionError(f"transactionLog '{location}' is no Delta table")
        self.refresh()
        return self

    def create_log(self):
        self.rows = []

    def decide(self, batch_id, query_id=QUERY):
        """Nine records in partition 0 of topic out, from offset 10 times `batch_id` on."""
        self.rows = [*(self.rows or []), row(batch_id, at(batch_id), query_id=query_id)]

    def refresh(self):
        self.version = len(self.rows)

    def query_ids(self):
        return {r.query_id for r in self.rows}

    def rows_from(self, query_id, batch_id):
        return [r for r in self.rows if r.query_id == query_id and r.batch_id >= batch_id]

    def _fates(self, asked, _deadline):
        fate = Fate.COMMITTED if self.committed else Fate.OPEN
        return {name: fate for name, _ in asked}


@pytest.fixture
def writer(monkeypatch):
    return Writer(monkeypatch)


OUT = TopicPartition("out", 0)
NEW = TopicPartition("out", 1)


SNAPSHOT = {"isolation.level": "snapshot", "transactionLog": "/log", "subscribe": "out"}


def reader(topics, **given):
    return stream(topics, SNAPSHOT | given)


def ask(offsets, start, **limits):
    return offsets.latest(start, **({"limited": False, "most": None} | limits))


def test_stream_waits_for_the_log_then_for_the_query_and_reads_it_whole(writer):
    topics = Topics({OUT: 7})  # somebody else's rows
    offsets = reader(topics, startingOffsets="earliest")
    start = offsets.initial()
    assert start == {OUT: 0}
    assert ask(offsets, start) == start
    writer.create_log()
    assert ask(offsets, start) == start
    topics.ends[OUT] = 19
    writer.decide(1)
    assert ask(offsets, start) == {OUT: 19}


def test_stream_that_waits_reads_nothing_of_a_batch_that_is_not_complete(writer):
    """Its records may be visible in this partition and not yet in another."""
    topics = Topics({OUT: 10})
    offsets = reader(topics, startingOffsets="earliest")
    start = offsets.initial()
    topics.ends[OUT] = 19
    assert ask(offsets, start) == start
    writer.committed = False
    writer.decide(1)
    assert ask(offsets, start) == {OUT: 10}
    writer.committed = True
    assert ask(offsets, start) == {OUT: 19}


@pytest.mark.parametrize("limits", [{}, {"limited": True}, {"limited": True, "most": 3}])
def test_nothing_is_new_while_the_query_is_awaited(writer, limits):
    topics = Topics({OUT: 10})
    offsets = reader(topics, startingOffsets="earliest", minOffsetsPerTrigger="1")
    writer.create_log()
    topics.ends |= {OUT: 25, NEW: 3}
    assert ask(offsets, {OUT: 4}, **limits) == {OUT: 4}
    assert offsets.seen == {OUT: 4}


def test_partition_that_came_while_the_query_was_awaited_is_read_from_its_beginning(writer):
    topics = Topics({OUT: 10})
    offsets = reader(topics)
    start = offsets.initial()
    topics.ends |= {OUT: 19, NEW: 3}
    assert ask(offsets, start) == start
    writer.decide(1)
    assert ask(offsets, start) == {OUT: 19, NEW: 3}


def test_stream_from_the_latest_offsets_has_all_of_a_query_that_comes_later(writer):
    topics = Topics({OUT: 10})
    offsets = reader(topics, startingOffsets="latest")
    start = offsets.initial()
    assert start == {OUT: 10}
    topics.ends[OUT] = 19
    writer.decide(1)
    assert ask(offsets, start) == {OUT: 19}


def test_query_that_comes_between_the_offsets_and_the_look_at_its_log_is_not_cut_off(writer):
    """The latest offsets are asked for first, so the batch in the log may be behind them."""
    topics = Topics({OUT: 10})
    offsets = reader(topics, startingOffsets="latest")
    writer.decide(1)
    assert offsets.initial() == {OUT: 10}


def test_available_now_without_a_query_ends_with_no_rows(writer):
    topics = Topics({OUT: 10})
    offsets = reader(topics, startingOffsets="earliest")
    offsets.freeze()
    start = offsets.initial()
    assert ask(offsets, start) == start
    writer.decide(0)
    assert ask(offsets, start) == start


def test_stream_waits_for_its_query_beside_others(writer):
    offsets = reader(Topics({OUT: 19}), startingOffsets="earliest", queryId=QUERY)
    writer.decide(1, query_id=OTHER)
    assert ask(offsets, {OUT: 0}) == {OUT: 0}
    writer.decide(1)
    assert ask(offsets, {OUT: 0}) == {OUT: 19}


def test_two_queries_that_come_at_the_same_time_are_told_apart_by_the_user(writer):
    offsets = reader(Topics({OUT: 19}))
    assert ask(offsets, {OUT: 0}) == {OUT: 0}
    writer.decide(1, query_id=OTHER)
    writer.decide(1)
    with pytest.raises(OptionError, match=r"/log has 2 queries\. Set queryId to one of them"):
        ask(offsets, {OUT: 0})


def test_partition_that_is_gone_while_the_query_is_awaited_is_reported(writer):
    topics = Topics({OUT: 10, NEW: 10})
    offsets = reader(topics)
    del topics.ends[NEW]
    with pytest.raises(DataLossError, match="out-1 does not exist any more"):
        ask(offsets, {OUT: 10, NEW: 10})


def test_waiting_is_told_at_once_and_then_once_a_minute(writer, caplog):
    clock = Clock()
    offsets = stream(Topics({OUT: 10}), SNAPSHOT | {"queryId": QUERY}, clock)

    def told():
        found = [record.getMessage() for record in caplog.records]
        caplog.clear()
        return found

    ask(offsets, {OUT: 10})
    (text,) = told()
    assert f"until query {QUERY} is in the transaction log at /log, which does not exist" in text
    clock.now += 59.9
    ask(offsets, {OUT: 10})
    assert told() == []
    clock.now += 0.1
    writer.decide(1, query_id=OTHER)
    ask(offsets, {OUT: 10})
    (text,) = told()
    assert f"until query {QUERY} is in the transaction log at /log." in text
    clock.now += 600
    writer.decide(1)
    ask(offsets, {OUT: 10})
    assert told() == []


def batch_read(topics, **given):
    common = {"kafka.bootstrap.servers": "127.0.0.1:1", "subscribe": "out"}
    level = {"isolation.level": "snapshot", "transactionLog": "/log"}
    return plan_ranges(read_session(batch_options(common | level | given), topics), Pushed())


def test_batch_read_of_a_log_without_a_query_is_empty(writer):
    topics = Topics({OUT: 10})
    writer.create_log()
    assert batch_read(topics) == []
    assert batch_read(topics, queryId=QUERY) == []
    writer.decide(0)
    assert [p.range.size for p in batch_read(topics)] == [10]


@pytest.mark.parametrize("given", [{"startingBatch": "0"}, {"endingBatch": "3"}])
def test_batch_of_a_log_without_a_query_is_not_there(writer, given):
    writer.create_log()
    with pytest.raises(OptionError, match=r"micro-batch 0 of the query is not .* there: none"):
        batch_read(Topics({OUT: 10}), **given)


@pytest.mark.parametrize("given", [{}, {"startingBatch": "0"}])
def test_batch_read_does_not_wait_for_a_log_or_for_a_query(writer, given):
    with pytest.raises(OptionError, match="/log' is no Delta table"):
        batch_read(Topics({OUT: 10}), **given)
    writer.decide(0, query_id=OTHER)
    with pytest.raises(OptionError, match=f"queryId '{QUERY}' is not in the transaction log"):
        batch_read(Topics({OUT: 10}), queryId=QUERY, **given)


def test_new_topic_is_read_in_whole_batches_and_from_its_beginning(writer):
    topics = Topics({OUT: 40})
    offsets = stream_with_ids(topics, SNAPSHOT | {"failOnDataLoss": "false"})
    start = StreamPosition({OUT: 40}, {"out": "old"})
    # Awaited: nothing is read, and from here on the start is that of the new topic.
    awaited = ask(offsets, start)
    assert awaited == StreamPosition({OUT: 0}, {"out": "first"})
    topics.ends[OUT] = 29
    writer.decide(1)
    writer.decide(2)
    writer.committed = False
    for begin in (start, awaited):
        after = ask(offsets, begin)
        assert [str(r) for r in offsets.ranges(begin, after)] == ["out-0 [0, 10)"]
