"""The judge. Reads topics with a plain client and knows nothing of the product."""

import time
from collections import Counter

from confluent_kafka import Consumer, IsolationLevel, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec


def committed_values(bootstrap_servers, topic):
    """All values that a read_committed consumer sees, by (partition, offset)."""
    messages = committed_messages(bootstrap_servers, topic)
    return {place: message.value().decode() for place, message in messages.items()}


def committed_messages(bootstrap_servers, topic):
    """All messages that a read_committed consumer sees, by (partition, offset)."""
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
                if message.error() is not None:
                    ended.add(message.partition())
                else:
                    messages[message.partition(), message.offset()] = message
        return messages
    finally:
        consumer.close()


def open_partitions(bootstrap_servers, topic):
    """The partitions that an open transaction holds back: last stable offset below the end."""
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    partitions = admin.list_topics(topic, timeout=20).topics[topic].partitions
    asked = {TopicPartition(topic, partition): OffsetSpec.latest() for partition in partitions}

    def ends(level):
        answers = admin.list_offsets(dict(asked), isolation_level=level, request_timeout=20)
        return {tp.partition: future.result().offset for tp, future in answers.items()}

    end = ends(IsolationLevel.READ_UNCOMMITTED)
    stable = ends(IsolationLevel.READ_COMMITTED)
    return {p: (stable[p], end[p]) for p in end if stable[p] != end[p]}


def assert_exactly_once(bootstrap_servers, topic, expected, settle_s=0.0):
    """Each expected value once, nothing else, and no transaction left open."""
    deadline = time.monotonic() + settle_s
    while (still_open := open_partitions(bootstrap_servers, topic)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not still_open, f"open transactions hold back (partition: stable, end) {still_open}"
    seen = Counter(committed_values(bootstrap_servers, topic).values())
    wanted = Counter(expected)
    lost, doubled = wanted - seen, seen - wanted
    assert not lost, f"{lost.total()} rows lost, first {sorted(lost)[:5]}"
    assert not doubled, f"{doubled.total()} rows doubled or foreign, first {sorted(doubled)[:5]}"
