"""The judge of the demo: count both topics with a plain read_committed consumer.

The judge uses no code of the product, only Kafka's own client and a dictionary.
"""

import json
import time
from collections import Counter

from confluent_kafka import Consumer, TopicPartition


def count_orders(bootstrap_servers: str, topic: str) -> Counter[str]:
    """How often each order's number is visible in a topic."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": "checker",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    try:
        partitions = consumer.list_topics(topic, timeout=20).topics[topic].partitions
        consumer.assign([TopicPartition(topic, number, 0) for number in partitions])
        orders: Counter[str] = Counter()
        ended: set[int | None] = set()
        deadline = time.monotonic() + 60
        while len(ended) < len(partitions):
            if time.monotonic() > deadline:
                raise SystemExit(f"topic {topic} could not be read to its end within a minute")
            for message in consumer.consume(5000, timeout=0.2):
                if message.error() is not None:
                    ended.add(message.partition())
                else:
                    orders[json.loads(message.value() or b"{}")["order"]] += 1
        return orders
    finally:
        consumer.close()


def verdict(sent: Counter[str], seen: Counter[str]) -> tuple[str, bool]:
    """The last line of the demo, and whether each order is there exactly once."""
    lost, duplicated = (sent - seen).total(), (seen - sent).total()
    good = lost == duplicated == 0
    counts = f"{sent.total()} in, {seen.total()} out, {lost} lost, {duplicated} duplicated"
    return f"{'exactly once' if good else 'NOT exactly once'}: {counts}", good
