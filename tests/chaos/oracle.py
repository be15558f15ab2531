"""The judge. Reads topics with a plain client and knows nothing of the product."""

import time
from collections import Counter

from confluent_kafka import Consumer, IsolationLevel, KafkaError, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

# Kafka answers EndTxn when the end is in the coordinator's log, and writes the markers behind that:
# milliseconds, unless the machine is busy. Far below every time-out that a test has to tell apart.
MARKERS_S = 3.0


def committed_values(bootstrap_servers, topic):
    """All values that a read_committed consumer sees, by (partition, offset)."""
    messages = committed_messages(bootstrap_servers, topic)
    return {place: message.value().decode() for place, message in messages.items()}


def committed_messages(bootstrap_servers, topic, settle_s=MARKERS_S):
    """All messages that a read_committed consumer sees, by (partition, offset).

    Sees what has been ended, also if its markers are on their way; not what is still open. Where
    a test leaves something open, waiting is of no use: `settle_s=0`.
    """
    if settle_s > 0:
        open_partitions(bootstrap_servers, topic, settle_s=settle_s)
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": "oracle",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
        }
    )
    try:
        partitions = consumer.list_topics(topic, timeout=20).topics[topic].partitions
        consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
        messages, ended = {}, set()
        deadline = time.monotonic() + 60
        while len(ended) < len(partitions):
            assert time.monotonic() < deadline, "the oracle could not read the topic to its end"
            for message in consumer.consume(1000, timeout=0.2):
                if message.error() is None:
                    messages[message.partition(), message.offset()] = message
                else:
                    assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
                    ended.add(message.partition())
        return messages
    finally:
        consumer.close()


def open_partitions(bootstrap_servers, topic, settle_s=0.0, besides=()):
    """The partitions that an open transaction holds back: last stable offset below the end.

    A transaction that was ended gets its markers a little later, so whoever says that none is open
    gives them time: `settle_s`. The partitions `besides` are left out: a test holds them back.
    """
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    partitions = admin.list_topics(topic, timeout=20).topics[topic].partitions
    looked_at = [partition for partition in partitions if partition not in besides]
    asked = {TopicPartition(topic, partition): OffsetSpec.latest() for partition in looked_at}

    def ends(level):
        answers = admin.list_offsets(dict(asked), isolation_level=level, request_timeout=20)
        return {tp.partition: future.result().offset for tp, future in answers.items()}

    deadline = time.monotonic() + settle_s
    end = ends(IsolationLevel.READ_UNCOMMITTED)
    while True:
        # Asked later, so it may be beyond the end: a marker came in between.
        stable = ends(IsolationLevel.READ_COMMITTED)
        held = {p: (stable[p], end[p]) for p in end if stable[p] < end[p]}
        if not held or time.monotonic() >= deadline:
            return held
        time.sleep(0.05)


def assert_none_open(bootstrap_servers, topic, besides=()):
    """No transaction is left open, but for those that a test has in the partitions `besides`."""
    held = open_partitions(bootstrap_servers, topic, settle_s=MARKERS_S, besides=besides)
    assert not held, f"open transactions hold back (partition: stable, end) {held}"


def assert_exactly_once(bootstrap_servers, topic, expected):
    """Each expected value once, nothing else, and no transaction left open."""
    assert_none_open(bootstrap_servers, topic)
    seen = Counter(committed_values(bootstrap_servers, topic).values())
    wanted = Counter(expected)
    lost, doubled = wanted - seen, seen - wanted
    assert not lost, f"{lost.total()} rows lost, first {sorted(lost)[:5]}"
    assert not doubled, f"{doubled.total()} rows doubled or foreign, first {sorted(doubled)[:5]}"
