"""Topics with what real ones hold, filled by plain clients that share no code with the product."""

import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from tests.chaos.oracle import assert_none_open

TIMEOUT_S = 30.0
# A fixed time in the past, so that a test can name the times of its records.
T0 = 1_700_000_000_000
# Records of any age stay. Else the broker removes those that T0 made years old.
_KEEP = {"retention.ms": "-1"}
_TINY_PRODUCERS = 16

# Every shape that key, value, headers and timestamp can have; all are for partition 0.
EDGE_RECORDS = [
    {"key": b"k", "value": b"v", "timestamp": T0},
    {"key": None, "value": b"no key", "timestamp": T0 + 1},
    {"key": b"tombstone", "value": None, "timestamp": T0 + 2},
    {"key": None, "value": None, "timestamp": T0 + 3},
    {"key": b"", "value": b"", "timestamp": T0 + 4},
    {"key": b"\x00\xff", "value": b"\x00\x7f\x80\xff", "timestamp": T0 + 999},
    {"key": b"one", "value": b"v", "headers": [("h", b"1")], "timestamp": T0 + 1000},
    {
        "key": b"same",
        "value": b"v",
        "headers": [("h", b"1"), ("h", b"2"), ("g", b""), ("h", b"1")],
        "timestamp": T0 + 1001,
    },
    {"key": b"null", "value": None, "headers": [("h", None), ("", b"")], "timestamp": T0 + 1500},
    {"key": "ключ".encode(), "value": b"v", "headers": [("заголовок", b"\xff")], "timestamp": T0},
]


def create(servers, partitions=1, *, name=None, **config):
    """A new topic; `segment_ms="100"` is the setting segment.ms."""
    name = name or f"parity-{uuid.uuid4().hex[:8]}"
    settings = _KEEP | {key.replace("_", "."): value for key, value in config.items()}
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([NewTopic(name, partitions, config=settings)])[name].result(TIMEOUT_S)
    _wait_for_leaders(admin, name, partitions)
    return name


def add_partitions(servers, topic, total):
    """More partitions for a topic, until it has this many."""
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_partitions([NewPartitions(topic, total)])[topic].result(TIMEOUT_S)
    _wait_for_leaders(admin, topic, total)


def numbered(count, partition=0, first=0, step_ms=10):
    """Records that differ in value and time: record i has the time T0 + i * step_ms."""
    return [
        {"value": str(i).encode(), "partition": partition, "timestamp": T0 + i * step_ms}
        for i in range(first, first + count)
    ]


def fill(servers, topic, records):
    """Write records without a transaction."""
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 0})
    _send(producer, topic, records)


def transactional(servers):
    """A producer for any number of transactions, one after the other."""
    producer = Producer(
        {
            "bootstrap.servers": servers,
            "transactional.id": f"parity-{uuid.uuid4().hex}",
            "transaction.timeout.ms": 600_000,  # an open one stays open as long as a module runs
            "linger.ms": 0,
            "retry.backoff.ms": 1,
            "log_level": 0,
        }
    )
    producer.init_transactions(TIMEOUT_S)
    return producer


def transact(producer, topic, records, *, commit=True):
    """One transaction, which adds one marker to each partition that it wrote to.

    The producer's next one waits for that marker; a reader, or another producer, has to do so.
    """
    producer.begin_transaction()
    _send(producer, topic, records)
    if commit:
        producer.commit_transaction(TIMEOUT_S)
    else:
        producer.abort_transaction(TIMEOUT_S)


@contextmanager
def open_transaction(servers, topic, records):
    """A transaction that is open inside the block, and aborted after it if it is still open.

    It lies behind the markers of those before. Gives a function that commits it.
    """
    assert_none_open(servers, topic)
    producer = transactional(servers)
    producer.begin_transaction()
    is_open = True

    def commit():
        nonlocal is_open
        producer.commit_transaction(TIMEOUT_S)
        is_open = False
        assert_none_open(servers, topic)

    try:
        _send(producer, topic, records)
        yield commit
    finally:
        if is_open:
            producer.abort_transaction(TIMEOUT_S)


def create_edge(servers):
    """Partition 0: EDGE_RECORDS. 1: 30 numbered records. 2: empty."""
    name = create(servers, 3)
    fill(servers, name, EDGE_RECORDS + numbered(30, 1))
    return name


def fill_tiny(servers, topic, count):
    """Transactions of one record each: every second offset is a marker."""

    def some(turn):
        producer = transactional(servers)
        for record in numbered(count // _TINY_PRODUCERS, first=turn * count // _TINY_PRODUCERS):
            transact(producer, topic, [record])

    with ThreadPoolExecutor(_TINY_PRODUCERS) as pool:
        list(pool.map(some, range(_TINY_PRODUCERS)))
    assert_none_open(servers, topic)


def trim(servers, topic, offsets):
    """Remove what lies before an offset, by partition, as retention does."""
    admin = AdminClient({"bootstrap.servers": servers})
    wanted = [TopicPartition(topic, partition, offset) for partition, offset in offsets.items()]
    for future in admin.delete_records(wanted).values():
        future.result(TIMEOUT_S)


def create_compacted(servers):
    """A topic of 154 offsets of which 11 are left: the last of each of seven keys, three
    tombstones, and the last record, because the cleaner leaves the last segment alone.
    """
    name = create(
        servers,
        cleanup_policy="compact",
        segment_ms="50",
        min_cleanable_dirty_ratio="0.01",
        delete_retention_ms="600000",
    )
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 0})
    for turn in range(3):
        keyed = [{"key": f"k{i % 7}", "value": f"{turn}-{i}"} for i in range(50)]
        _send(producer, name, [*keyed, {"key": f"tombstone{turn}", "value": None}])
    time.sleep(0.06)  # the next record begins a segment
    _send(producer, name, [{"key": "last", "value": "v"}])
    deadline = time.monotonic() + TIMEOUT_S
    while time.monotonic() < deadline:
        if len(offsets_of(servers, name)) == 11:
            return name
    raise TimeoutError(f"{name} was not compacted in {TIMEOUT_S} s")


def offsets_of(servers, topic, partition=0):
    """The offsets of all records that a plain consumer gets from a partition."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "parity",
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
            "enable.auto.commit": False,
            "fetch.wait.max.ms": 20,
        }
    )
    try:
        consumer.assign([TopicPartition(topic, partition, 0)])
        found = []
        while True:
            message = consumer.poll(TIMEOUT_S)
            if message is None:
                raise TimeoutError(f"{topic}-{partition} was not read to its end")
            if message.error() is None:
                found.append(message.offset())
            else:
                assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
                return found
    finally:
        consumer.close()


def _wait_for_leaders(admin, topic, partitions):
    deadline = time.monotonic() + TIMEOUT_S
    while time.monotonic() < deadline:
        found = admin.list_topics(topic, timeout=TIMEOUT_S).topics[topic]
        if sum(part.leader > 0 for part in found.partitions.values()) == partitions:
            return
        time.sleep(0.05)
    raise TimeoutError(f"topic {topic} had no leaders after {TIMEOUT_S} s")


def _send(producer, topic, records):
    for record in records:
        producer.produce(topic, on_delivery=_delivered, **{"partition": 0, **record})
    assert producer.flush(TIMEOUT_S) == 0, "not every record was written"


def _delivered(error, message):
    assert error is None, error
