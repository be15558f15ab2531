"""What the data itself says about transactions, in all four kinds, on a real broker."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from spark_eos._deadline import Deadline
from spark_eos._kafka.config.client_config import ClientConfig
from spark_eos._kafka.consume.visibility import fates
from spark_eos._protocol.offsets.topic_partition import PartitionOffsets
from spark_eos._protocol.transactions.fate import Fate
from spark_eos.errors import BrokerUnreachableError
from spark_eos.testing import EmbeddedKafka

if TYPE_CHECKING:
    from tests.conftest import TopicFactory

COMPACTED = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.001",
    "min.compaction.lag.ms": "0",
    "delete.retention.ms": "0",
    "segment.ms": "200",
}


def soon(ms: float = 20_000) -> Deadline:
    return Deadline.after_ms(ms)


@pytest.fixture
def config(kafka: EmbeddedKafka) -> ClientConfig:
    return ClientConfig.from_options({"bootstrap.servers": kafka.bootstrap_servers})


def begin(servers: str) -> Producer:
    settings = {
        "bootstrap.servers": servers,
        "transactional.id": f"spark-eos-{uuid.uuid4()}-0",
        "retry.backoff.ms": 10,
        "reconnect.backoff.ms": 10,
        "log_level": 0,
    }
    producer = Producer(settings)
    producer.list_topics(timeout=20)
    producer.init_transactions(20)
    producer.begin_transaction()
    return producer


def write(
    producer: Producer, topic: str, partitions: Sequence[int], records: int = 3, key: str = "k"
) -> list[PartitionOffsets]:
    """Records in each partition, flushed and open; what a task would log about them."""
    offsets: dict[int, list[int]] = {}

    def report(error: object, message: object) -> None:
        assert error is None
        offsets.setdefault(message.partition(), []).append(message.offset())  # type: ignore[attr-defined]

    for partition in partitions:
        for _ in range(records):
            producer.produce(topic, b"v", key=key, partition=partition, on_delivery=report)
    assert producer.flush(20) == 0
    return [
        PartitionOffsets(
            topic=topic,
            partition=partition,
            first_offset=min(found),
            last_offset=max(found),
            records=len(found),
        )
        for partition, found in sorted(offsets.items())
    ]


def ended(
    servers: str, how: str, topic: str, *partitions: int, **options: str
) -> list[PartitionOffsets]:
    producer = begin(servers)
    written = write(producer, topic, partitions, **options)  # type: ignore[arg-type]
    {"commit": producer.commit_transaction, "abort": producer.abort_transaction}[how](20)
    return written


def test_committed_aborted_and_open_side_by_side_in_one_partition(
    kafka: EmbeddedKafka, topic: TopicFactory, config: ClientConfig
) -> None:
    name, servers = topic(2), kafka.bootstrap_servers
    transactions = [
        ("aborted first", ended(servers, "abort", name, 0)),
        ("committed", ended(servers, "commit", name, 0, 1)),
        ("aborted", ended(servers, "abort", name, 0)),
        ("committed again", ended(servers, "commit", name, 0)),
        ("aborted at the end", ended(servers, "abort", name, 1)),
    ]
    producer = begin(servers)
    transactions.append(("open", write(producer, name, [0])))
    found = fates(config, transactions, soon(10_000))
    assert found == {
        "aborted first": Fate.ABORTED,
        "committed": Fate.COMMITTED,
        "aborted": Fate.ABORTED,
        "committed again": Fate.COMMITTED,
        "aborted at the end": Fate.ABORTED,
        "open": Fate.OPEN,
    }
    producer.abort_transaction(20)


def test_open_one_is_looked_at_again_until_it_ends(
    kafka: EmbeddedKafka, topic: TopicFactory, config: ClientConfig
) -> None:
    import threading

    name = topic()
    producer = begin(kafka.bootstrap_servers)
    written = write(producer, name, [0])
    later = threading.Timer(0.7, producer.commit_transaction, [20])
    later.start()
    started = time.monotonic()
    assert fates(config, [("t", written)], soon()) == {"t": Fate.COMMITTED}
    assert 0.5 < time.monotonic() - started < 10
    later.join()


def test_partition_held_by_another_is_no_obstacle_where_a_second_one_can_tell(
    kafka: EmbeddedKafka, topic: TopicFactory, config: ClientConfig
) -> None:
    name = topic(2)
    holder = begin(kafka.bootstrap_servers)
    write(holder, name, [0])
    done = ended(kafka.bootstrap_servers, "commit", name, 0, 1)
    started = time.monotonic()
    assert fates(config, [("t", done), ("held", done[:1])], soon(10_000)) == {
        "t": Fate.COMMITTED,
        "held": Fate.OPEN,
    }
    assert time.monotonic() - started < 20  # the deadline, and room for a busy machine
    holder.abort_transaction(20)


def test_records_before_the_log_start_cannot_tell(
    kafka: EmbeddedKafka, topic: TopicFactory, config: ClientConfig
) -> None:
    name, servers = topic(2), kafka.bootstrap_servers
    transactions = [
        ("committed, all deleted", ended(servers, "commit", name, 0)),
        ("aborted, all deleted", ended(servers, "abort", name, 0)),
        ("committed, other partition left", ended(servers, "commit", name, 0, 1)),
        ("aborted, other partition left", ended(servers, "abort", name, 0, 1)),
    ]
    partly = ended(servers, "commit", name, 0)
    delete_before(servers, name, 0, partly[0].first_offset + 1)
    found = fates(config, [*transactions, ("committed, first deleted", partly)], soon())
    assert found == {
        "committed, all deleted": Fate.GONE,
        "aborted, all deleted": Fate.GONE,
        "committed, other partition left": Fate.COMMITTED,
        "aborted, other partition left": Fate.ABORTED,
        "committed, first deleted": Fate.COMMITTED,
    }


def test_records_compacted_away_cannot_tell(
    kafka: EmbeddedKafka, topic: TopicFactory, config: ClientConfig
) -> None:
    """The same key again and again: the cleaner leaves only the newest record of it."""
    name, servers = topic(config=COMPACTED), kafka.bootstrap_servers
    old = ended(servers, "commit", name, 0)
    lost = ended(servers, "abort", name, 0)
    deadline = soon(90_000)

    def compacted() -> bool:
        time.sleep(0.3)
        ended(servers, "commit", name, 0)  # rolls the segment, and makes what is before it dirty
        return not ({old[0].last_offset, lost[0].last_offset} & raw_offsets(servers, name))

    wait_until(compacted, deadline)
    new = ended(servers, "commit", name, 0)
    assert fates(config, [("old", old), ("lost", lost), ("new", new)], soon()) == {
        "old": Fate.GONE,
        "lost": Fate.GONE,
        "new": Fate.COMMITTED,
    }


def test_deleted_topic_and_nothing_written_are_gone(
    kafka: EmbeddedKafka, topic: TopicFactory, config: ClientConfig
) -> None:
    name, kept, servers = topic(), topic(), kafka.bootstrap_servers
    both = begin(servers)
    written = write(both, name, [0]) + write(both, kept, [0])
    both.commit_transaction(20)
    admin = AdminClient({"bootstrap.servers": servers})
    admin.delete_topics([name])[name].result(20)
    wait_until(lambda: fates(config, [("t", written[:1])], soon()) == {"t": Fate.GONE}, soon())
    found = fates(config, [("both", written), ("empty", [])], soon())
    assert found == {"both": Fate.COMMITTED, "empty": Fate.GONE}


def test_offset_behind_the_end_of_the_log_cannot_tell(
    kafka: EmbeddedKafka, topic: TopicFactory, config: ClientConfig
) -> None:
    """As after a loss of the log's tail: nothing there is not the same as not ended."""
    name = topic()
    ended(kafka.bootstrap_servers, "commit", name, 0)
    end = 4  # three records and a marker
    for offset in (end, end + 100):
        place = PartitionOffsets(
            topic=name, partition=0, first_offset=offset, last_offset=offset, records=1
        )
        assert fates(config, [("t", [place])], soon()) == {"t": Fate.GONE}


def test_unreachable_broker_is_no_fate() -> None:
    away = ClientConfig.from_options({"bootstrap.servers": "127.0.0.1:1"})
    place = PartitionOffsets(topic="t", partition=0, first_offset=0, last_offset=0, records=1)
    started = time.monotonic()
    with pytest.raises(BrokerUnreachableError, match=r"127\.0\.0\.1:1"):
        fates(away, [("t", [place])], soon(500))
    assert time.monotonic() - started < 3


def delete_before(servers: str, topic: str, partition: int, offset: int) -> None:
    admin = AdminClient({"bootstrap.servers": servers})
    for future in admin.delete_records([TopicPartition(topic, partition, offset)]).values():
        future.result(20)


def raw_offsets(servers: str, topic: str) -> set[int]:
    """Every offset that still has a record, committed or not."""
    settings = {
        "bootstrap.servers": servers,
        "group.id": uuid.uuid4().hex,
        "isolation.level": "read_uncommitted",
        "enable.partition.eof": True,
    }
    consumer = Consumer(settings)
    offsets: set[int] = set()
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        while (message := consumer.poll(10)) is not None and message.error() is None:
            offset = message.offset()
            assert offset is not None
            offsets.add(offset)
    finally:
        consumer.close()
    return offsets


def wait_until(condition: Callable[[], bool], deadline: Deadline) -> None:
    while not condition():
        if deadline.passed:
            pytest.fail("it did not happen in time")
