"""Ranges of offsets, read from a real broker: what is inside, where they end, what is gone."""

from __future__ import annotations

import random
import threading
import time
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from spark_eos._kafka.config.client_config import ClientConfig
from spark_eos._kafka.consume.consumer import ConsumerPool, ConsumerSettings
from spark_eos._kafka.consume.data_loss import DataLoss
from spark_eos._kafka.consume.range_reader import ReadPolicy
from spark_eos._protocol.offsets.isolation import IsolationLevel
from spark_eos._protocol.offsets.topic_partition import OffsetRange
from spark_eos.errors import BrokerUnreachableError, DataLossError
from spark_eos.testing import EmbeddedKafka

SKIP = DataLoss(fail=False)


class Log:
    """A topic of one partition, written by a plain producer."""

    def __init__(self, servers: str, topic: str) -> None:
        self.servers, self.topic = servers, topic
        self.admin = AdminClient({"bootstrap.servers": servers})
        self._next = 0
        self.pools: dict[ClientConfig, ConsumerPool] = {}

    @property
    def kept(self) -> list[Any]:
        """The consumers that are warm."""
        return [consumer for pool in self.pools.values() for consumer in pool._warm.values()]

    def write(self, count: int, end: str | None = None, size: int = 1) -> Producer:
        """Numbered records; with `end` in a transaction that is committed, aborted or left open."""
        settings: dict[str, Any] = {"bootstrap.servers": self.servers, "linger.ms": 5}
        if end is not None:
            settings |= {"transactional.id": str(uuid.uuid4()), "retry.backoff.ms": 10}
        producer = Producer(settings)
        if end is not None:
            producer.init_transactions(20)
            producer.begin_transaction()
        for _ in range(count):
            producer.produce(self.topic, f"{self._next}".rjust(size).encode(), partition=0)
            producer.poll(0)
            self._next += 1
        assert producer.flush(20) == 0
        if end == "commit":
            producer.commit_transaction(20)
        if end == "abort":
            producer.abort_transaction(20)
        return producer

    def trim(self, offset: int) -> None:
        place = TopicPartition(self.topic, 0, offset)
        self.admin.delete_records([place])[place].result(20)

    def read(
        self,
        start: int,
        end: int,
        *,
        isolation: str = "read_committed",
        loss: DataLoss | None = None,
        timeout_ms: int = 20_000,
        **client: Any,
    ) -> Iterator[list[Any]]:
        config = ClientConfig.from_options({"bootstrap.servers": self.servers, **client})
        settings = ConsumerSettings(isolation_level=IsolationLevel(isolation), group_id="g")
        policy = ReadPolicy(poll_timeout_ms=timeout_ms, data_loss=loss or DataLoss(fail=True))
        pool = self.pools.setdefault(config, ConsumerPool(config))
        return pool.read(settings, OffsetRange(self.topic, 0, start, end), policy)

    def offsets(self, start: int, end: int, **options: Any) -> list[int]:
        return [m.offset() for records in self.read(start, end, **options) for m in records]


@pytest.fixture
def log(kafka: EmbeddedKafka, topic: Any) -> Iterator[Log]:
    log = Log(kafka.bootstrap_servers, topic())
    yield log
    for pool in log.pools.values():
        pool.close()
    assert log.kept == []


def test_any_range_of_a_log_is_read_whole_by_one_warm_consumer(log: Log) -> None:
    """Ranges forward and back, some left in the middle: what was fetched before never shows."""
    log.write(3000)
    choice = random.Random(7)
    log.offsets(0, 1)
    (kept,) = log.kept
    for _ in range(150):
        start = choice.randrange(3000)
        end = choice.randrange(start, 3001)
        if choice.random() < 0.3:
            for records in log.read(start, end):
                assert records[0].offset() == start
                break
            continue
        assert log.offsets(start, end) == list(range(start, end))
    assert log.kept == [kept]
    assert kept.assignment() == []  # it fetches nothing between two ranges


def test_range_ends_where_only_markers_and_aborted_records_are_left(log: Log) -> None:
    log.write(3, "commit")  # 0 to 2, marker 3
    log.write(4, "abort")  # 4 to 7, marker 8
    log.write(2, "abort")  # 9 and 10, marker 11
    started = time.monotonic()
    assert log.offsets(0, 12) == [0, 1, 2]
    assert log.offsets(3, 12) == []
    assert log.offsets(8, 9) == []
    assert time.monotonic() - started < 5  # far below the time-out of a read
    assert log.offsets(0, 12, isolation="read_uncommitted") == [0, 1, 2, 4, 5, 6, 7, 9, 10]


def test_range_with_markers_inside_ends_at_its_offset_and_not_by_a_count(log: Log) -> None:
    for _ in range(4):
        log.write(2, "commit")  # 0, 1, marker 2, 3, 4, marker 5, ...
    assert log.offsets(0, 4) == [0, 1, 3]
    assert log.offsets(1, 7) == [1, 3, 4, 6]
    assert log.offsets(2, 9) == [3, 4, 6, 7]


def test_range_ends_before_an_open_transaction(log: Log) -> None:
    log.write(3, "commit")
    log.write(1, "abort")  # 4, marker 5
    left_open = log.write(2, "open")
    assert log.offsets(0, 6) == [0, 1, 2]
    assert log.offsets(0, 8, isolation="read_uncommitted") == [0, 1, 2, 4, 6, 7]
    left_open.abort_transaction(20)


def test_two_ranges_at_once_do_not_disturb_each_other(log: Log) -> None:
    log.write(20_000)
    log.offsets(0, 1)  # there is a warm one that both could take
    one, two = log.read(0, 20_000), log.read(5, 9)
    first = [m.offset() for m in next(one)]
    assert [m.offset() for records in two for m in records] == [5, 6, 7, 8]
    rest = [m.offset() for records in one for m in records]
    assert first + rest == list(range(20_000))


def test_trimmed_start_is_a_loss_that_is_named(log: Log) -> None:
    log.write(10)
    log.trim(4)
    with pytest.raises(DataLossError, match=f"{log.topic}-0, offsets 2 to 3: .* starts at 4"):
        log.offsets(2, 8)
    assert log.offsets(2, 8, loss=SKIP) == [4, 5, 6, 7]


def test_range_that_is_gone_whole_is_a_loss(log: Log) -> None:
    log.write(10)
    log.trim(8)
    with pytest.raises(DataLossError, match="offsets 1 to 4"):
        log.offsets(1, 5)
    assert log.offsets(1, 5, loss=SKIP) == []


def test_range_behind_the_end_is_a_loss(log: Log) -> None:
    """As after a topic was created again with fewer records."""
    log.write(10)
    with pytest.raises(DataLossError, match="offsets 50 to 59: the partition now ends at 10"):
        log.offsets(50, 60)
    assert log.offsets(50, 60, loss=SKIP) == []


def test_log_that_is_trimmed_while_it_is_read(log: Log) -> None:
    """Small fetches, so that most of it is not yet fetched when it goes."""
    log.write(20_000, size=1000)
    small = {"queued.min.messages": "1", "fetch.message.max.bytes": "50000"}
    reading = log.read(0, 20_000, loss=SKIP, **small)
    found = [m.offset() for m in next(reading)]
    log.trim(19_000)
    found += [m.offset() for records in reading for m in records]
    assert found[-1] == 19_999
    assert found[-1000:] == list(range(19_000, 20_000))
    assert len(found) < 19_500
    assert found == sorted(set(found))
    with pytest.raises(DataLossError, match="starts at 19000"):
        log.offsets(0, 20_000)


def test_topic_that_is_deleted_is_a_loss(log: Log) -> None:
    log.write(10)
    assert log.offsets(0, 5) == [0, 1, 2, 3, 4]
    log.admin.delete_topics([log.topic])[log.topic].result(20)
    with pytest.raises(DataLossError, match=f"{log.topic}-0, offsets 5 to 9: .* not exist"):
        log.offsets(5, 10)


def test_end_that_never_comes_is_waited_for_and_then_named(log: Log) -> None:
    log.write(5)
    with pytest.raises(BrokerUnreachableError, match=r"nothing came at offset 5 for 700 ms .* 5"):
        log.offsets(0, 9, timeout_ms=700)
    assert not log.kept  # a consumer that met trouble is not used again
    threading.Timer(0.5, lambda: log.write(4)).start()
    assert log.offsets(0, 9) == list(range(9))


@pytest.mark.slow
def test_broker_that_is_away_for_a_while_delays_a_read(tmp_path: Any, topic: Any) -> None:
    with EmbeddedKafka(tmp_path) as own:
        log = Log(own.bootstrap_servers, topic(on=own))
        log.write(20_000, size=500)
        small = {"queued.min.messages": "1", "fetch.message.max.bytes": "50000"}
        reading = log.read(0, 20_000, timeout_ms=60_000, **small)
        found = [m.offset() for m in next(reading)]
        own.stop_node(1)
        threading.Timer(1.0, lambda: own.start_node(1)).start()
        found += [m.offset() for records in reading for m in records]
        assert found == list(range(20_000))


def test_memory_is_bounded_by_the_settings_and_not_by_the_partition(log: Log) -> None:
    """120 MB of large records through a consumer that may hold 4 MB."""
    log.write(120, size=900_000)
    before = _resident_mb()
    most, count = 0.0, 0
    for records in log.read(0, 120, **{"queued.max.messages.kbytes": "4096"}):
        count += len(records)
        most = max(most, _resident_mb() - before)
    assert count == 120
    assert most < 90, f"{most:.0f} MB more than before"


def _resident_mb() -> float:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096 / 1e6
