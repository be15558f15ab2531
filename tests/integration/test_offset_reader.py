"""Partitions and offsets as a real cluster tells them, also when a leader has just died."""

from __future__ import annotations

import time
import uuid
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from spark_eos._kafka.admin.offset_reader import OffsetReader, Retries
from spark_eos._kafka.config.client_config import ClientConfig
from spark_eos._protocol.offsets.isolation import IsolationLevel
from spark_eos._protocol.offsets.subscription import Assign, Pattern, Subscribe
from spark_eos.errors import BrokerUnreachableError
from spark_eos.testing import EmbeddedKafka

RETRIES = Retries(timeout_ms=60_000, at_least=3, interval_ms=10)


def reader(kafka: EmbeddedKafka, isolation: str = "read_committed") -> OffsetReader:
    config = ClientConfig.from_options({"bootstrap.servers": kafka.bootstrap_servers})
    return OffsetReader(config, IsolationLevel(isolation), RETRIES)


def write(kafka: EmbeddedKafka, topic: str, *times: int, transaction: bool = False) -> Producer:
    """Records of these times in partition 0; in a transaction that is left open, if asked."""
    settings: dict[str, Any] = {"bootstrap.servers": kafka.bootstrap_servers, "log_level": 0}
    if transaction:
        settings["transactional.id"] = str(uuid.uuid4())
    producer = Producer(settings)
    if transaction:
        producer.init_transactions(20)
        producer.begin_transaction()
    for time_ms in times:
        producer.produce(topic, b"v", partition=0, timestamp=time_ms)
    assert producer.flush(60) == 0
    return producer


def test_partitions_of_each_kind_of_subscription(kafka: EmbeddedKafka, topic: Any) -> None:
    one, two = topic(2), topic(1)
    every = {(one, 0), (one, 1), (two, 0)}
    asked = reader(kafka)
    assert asked.partitions(Subscribe((one, two))).keys() == every
    assert asked.partitions(Subscribe((one, "nowhere"))).keys() == {(one, 0), (one, 1)}
    assert asked.partitions(Assign(((one, 1), (one, 7)))).keys() == {(one, 1)}
    prefix = one.rpartition("-")[0]
    assert asked.partitions(Pattern(f"{prefix}.*")).keys() == every
    assert asked.partitions(Pattern(f"^{prefix}$")) == {}
    assert not any(name.startswith("__") for name, _ in asked.partitions(Pattern(".*")))
    ids = asked.partitions(Subscribe((one, two)))
    assert ids[one, 0] == ids[one, 1] != ids[two, 0]


def test_offsets_follow_the_isolation_level(kafka: EmbeddedKafka, topic: Any) -> None:
    name = topic(2)
    write(kafka, name, 1000, 2000, 3000)
    left_open = write(kafka, name, 4000, transaction=True)
    places = [(name, 0), (name, 1)]
    committed, everything = reader(kafka), reader(kafka, "read_uncommitted")
    assert committed.latest(places) == {(name, 0): 3, (name, 1): 0}
    assert everything.latest(places) == {(name, 0): 4, (name, 1): 0}
    left_open.commit_transaction(20)
    while committed.latest([(name, 0)]) == {(name, 0): 3}:  # the marker follows the answer
        time.sleep(0.01)
    assert committed.latest([(name, 0)]) == {(name, 0): 5}
    place = TopicPartition(name, 0, 2)
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    admin.delete_records([place])[place].result(20)
    assert committed.earliest(places) == {(name, 0): 2, (name, 1): 0}
    assert committed.latest([]) == {}


def test_open_transaction_takes_nothing_back_from_who_read_into_it(
    kafka: EmbeddedKafka, topic: Any
) -> None:
    """As a query of Spark's own connector does, whose checkpoint then comes here."""
    name = topic(2)
    write(kafka, name, 1000, 2000, 3000)
    left_open = write(kafka, name, 4000, 5000, transaction=True)
    places, known = [(name, 0), (name, 1)], {(name, 0): 4, (name, 1): 0}
    started = time.monotonic()
    assert reader(kafka).latest_not_behind(places, known) == known
    assert time.monotonic() - started < 4  # nothing to wait for: the answer is certain
    gone = {(name, 0): 6, (name, 1): 0}
    assert reader(kafka).latest_not_behind(places, gone) == {(name, 0): 3, (name, 1): 0}
    left_open.abort_transaction(20)


def test_offset_of_a_time(kafka: EmbeddedKafka, topic: Any) -> None:
    name = topic(2)
    write(kafka, name, 1000, 3000, 2000, 5000)
    asked = reader(kafka)
    for time_ms, offset in [(0, 0), (1000, 0), (1001, 1), (2500, 1), (3001, 3), (5000, 3)]:
        assert asked.at({(name, 0): time_ms, (name, 1): time_ms}) == {(name, 0): offset}
    assert asked.at({(name, 0): 5001}) == {}


def test_partition_that_is_not_there_has_no_offset(kafka: EmbeddedKafka, topic: Any) -> None:
    name = topic(1)
    assert reader(kafka).latest([(name, 0), (name, 5)]) == {(name, 0): 0}
    assert reader(kafka).earliest([("nowhere", 0)]) == {}


@pytest.mark.slow
def test_offsets_are_told_by_the_new_leader_when_one_dies(
    kafka3: EmbeddedKafka, topic: Any
) -> None:
    """The reader has asked the old leader before, and knows no other."""
    name = topic(1, on=kafka3)
    write(kafka3, name, 1000, 2000)
    asked = reader(kafka3)
    assert asked.latest([(name, 0)]) == {(name, 0): 2}
    admin = AdminClient({"bootstrap.servers": kafka3.bootstrap_servers})
    leader = admin.list_topics(name, timeout=20).topics[name].partitions[0].leader
    kafka3.kill(leader)
    try:
        assert asked.latest_not_behind([(name, 0)], {(name, 0): 2}) == {(name, 0): 2}
        assert asked.partitions(Subscribe((name,))).keys() == {(name, 0)}
    finally:
        kafka3.start_node(leader)


def test_cluster_that_is_away_is_named_after_its_tries() -> None:
    config = ClientConfig.from_options({"bootstrap.servers": "127.0.0.1:1"})
    asked = OffsetReader(
        config, IsolationLevel.READ_COMMITTED, Retries(timeout_ms=300, at_least=2, interval_ms=1)
    )
    started = time.monotonic()
    with pytest.raises(BrokerUnreachableError, match=r"127\.0\.0\.1:1 did not .* 300 ms .*refused"):
        asked.partitions(Subscribe(("t",)))
    with pytest.raises(BrokerUnreachableError, match=r"after \d+ tries"):
        asked.latest([("t", 0)])
    assert time.monotonic() - started < 10
