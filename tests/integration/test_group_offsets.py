"""Offsets of a consumer group that are missing: refused as a start, and put back from the log."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from spark_eos._deadline import Deadline
from spark_eos._kafka.admin.group import ConsumerGroups
from spark_eos._kafka.config.client_config import ClientConfig
from spark_eos._options import stream_options
from spark_eos._protocol.offsets.offset_map import to_map
from spark_eos._protocol.offsets.topic_partition import Offsets
from spark_eos._recovery.group_offsets import put_back
from spark_eos._session import read_session_of
from spark_eos._source.stream_offsets import StreamOffsets
from spark_eos.errors import BrokerUnreachableError, OptionError
from spark_eos.testing import EmbeddedKafka
from tests.conftest import SMALL_JVM

if TYPE_CHECKING:
    from tests.conftest import TopicFactory

# The shortest that a broker takes: a minute.
FORGETFUL = {"offsets.retention.minutes": "1", "offsets.retention.check.interval.ms": "500"}


def soon(ms: float = 30_000) -> Deadline:
    return Deadline.after_ms(ms)


class Group:
    """A topic of two partitions with ten records in each, and a group that reads it."""

    def __init__(self, cluster: EmbeddedKafka, topic: str) -> None:
        self.servers, self.topic = cluster.bootstrap_servers, topic
        self.id = f"group-{uuid.uuid4().hex}"
        self.groups = ConsumerGroups(ClientConfig.from_options({"bootstrap.servers": self.servers}))
        producer = Producer({"bootstrap.servers": self.servers})
        for number in range(20):
            producer.produce(topic, str(number), partition=number % 2)
        assert producer.flush(30) == 0

    def consumer(self) -> Consumer:
        return Consumer(
            {
                "bootstrap.servers": self.servers,
                "group.id": self.id,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
            }
        )

    def commit(self, *offsets: int) -> None:
        """Offsets of partition 0, 1 and so on."""
        places = [TopicPartition(self.topic, *place) for place in enumerate(offsets)]
        consumer = self.consumer()
        consumer.commit(offsets=places, asynchronous=False)
        consumer.close()

    def delete(self) -> None:
        admin = AdminClient({"bootstrap.servers": self.servers})
        admin.delete_consumer_groups([self.id])[self.id].result(30)

    def committed(self) -> list[int | None]:
        places = [(self.topic, partition) for partition in (0, 1)]
        found = self.groups.committed_offsets(self.id, places, soon())
        return [found.get(place) for place in places]

    def start(self) -> list[int]:
        """Where a new query starts with `startingOffsets` group."""
        given = {"kafka.bootstrap.servers": self.servers, "subscribe": self.topic}
        options = stream_options(given | {"startingOffsets": "group", "group.id": self.id})
        found = StreamOffsets(read_session_of(options)).initial().offsets
        return [found[self.topic, partition] for partition in (0, 1)]

    def restore(self, *offsets: int, topic: str | None = None) -> Offsets:
        """Where the last batch in the log ended in partition 0, 1 and so on."""
        logged = {(topic or self.topic, p): offset for p, offset in enumerate(offsets)}
        return put_back(self.groups, self.id, json.dumps(to_map(logged)), soon())


@pytest.fixture
def group(kafka: EmbeddedKafka, topic: TopicFactory) -> Group:
    return Group(kafka, topic(2))


def wait_until(is_so: Callable[[], bool], timeout_s: float) -> None:
    deadline = time.monotonic() + timeout_s
    while not is_so():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.1)


def test_start_is_refused_while_the_group_has_no_offsets(group: Group) -> None:
    with pytest.raises(OptionError, match=f"group '{group.id}' has no committed offsets"):
        group.start()
    group.commit(4, 7)
    assert group.start() == [4, 7]
    group.delete()
    with pytest.raises(OptionError, match=f"group '{group.id}' has no committed offsets"):
        group.start()


def test_start_of_a_partition_without_an_offset_is_its_earliest(
    group: Group, caplog: pytest.LogCaptureFixture
) -> None:
    group.commit(4)
    assert group.start() == [4, 0]
    assert f"no committed offsets for {group.topic}-1:" in caplog.text


def test_offsets_that_are_gone_are_put_back(group: Group, caplog: pytest.LogCaptureFixture) -> None:
    group.commit(4, 7)
    group.delete()
    assert group.restore(4, 7) == {(group.topic, 0): 4, (group.topic, 1): 7}
    assert group.committed() == [4, 7]
    assert f"{group.topic}-0 at 4, {group.topic}-1 at 7" in caplog.text
    assert group.start() == [4, 7]


@pytest.mark.parametrize("there", [2, 9], ids=["behind the log", "ahead of the log"])
def test_offset_that_is_there_is_not_moved(group: Group, there: int) -> None:
    group.commit(there)
    assert group.restore(4, 7) == {(group.topic, 1): 7}
    assert group.committed() == [there, 7]
    assert group.restore(5, 8) == {}
    assert group.committed() == [there, 7]


def test_group_with_a_member_is_left_alone(group: Group) -> None:
    consumer = group.consumer()
    consumer.subscribe([group.topic])

    def assigned() -> bool:
        consumer.poll(0.1)
        return bool(consumer.assignment())

    wait_until(assigned, 60)
    assert group.restore(4, 7) == {}
    assert group.committed() == [None, None]
    consumer.close()
    assert group.restore(4, 7) == {(group.topic, 0): 4, (group.topic, 1): 7}


def test_offset_of_a_topic_that_is_gone_is_left_out(group: Group) -> None:
    assert group.restore(4, topic="gone") == {}
    assert group.restore(4, 7, 3) == {(group.topic, 0): 4, (group.topic, 1): 7}


def test_offsets_in_an_open_transaction_are_waited_for_and_named(group: Group) -> None:
    group.commit(2, 3)
    producer = Producer({"bootstrap.servers": group.servers, "transactional.id": group.id})
    producer.init_transactions(30)
    producer.begin_transaction()
    consumer = group.consumer()
    producer.send_offsets_to_transaction(
        [TopicPartition(group.topic, 0, 9)], consumer.consumer_group_metadata(), 30
    )
    consumer.close()
    with pytest.raises(BrokerUnreachableError, match="a transaction that is still open"):
        group.groups.committed_offsets(group.id, [(group.topic, 0)], soon(1_500))
    ending = threading.Timer(1.0, producer.commit_transaction, [30])
    ending.start()
    assert group.restore(4, 7) == {}
    ending.join()
    assert group.committed() == [9, 3]


def test_cluster_that_does_not_answer_is_named() -> None:
    config = ClientConfig.from_options({"bootstrap.servers": "127.0.0.1:9"})
    with pytest.raises(BrokerUnreachableError, match="9 did not return the offsets of group"):
        ConsumerGroups(config).committed_offsets("g", [("t", 0)], soon(500))


FIRST_QUESTIONS = """
import sys
from spark_eos._kafka.config.client_config import ClientConfig
from spark_eos._kafka.admin.group import ConsumerGroups
from spark_eos._deadline import Deadline

config = ClientConfig.from_options({"bootstrap.servers": sys.argv[1]})
for number in range(10):
    deadline = Deadline.after_ms(30_000)
    assert ConsumerGroups(config).committed_offsets(f"g{number}", [("t", 0)], deadline) == {}
"""


def test_coordinator_that_does_not_lead_yet_is_asked_again(tmp_path: Path) -> None:
    """It answers NOT_COORDINATOR. In a process of its own: librdkafka may crash by that answer."""
    with EmbeddedKafka(tmp_path, jvm_flags=SMALL_JVM) as own:
        done = subprocess.run(
            [sys.executable, "-c", FIRST_QUESTIONS, own.bootstrap_servers],
            cwd=Path(__file__).parents[2],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    assert done.returncode == 0, done.stderr


@pytest.fixture
def forgetful(tmp_path: Path) -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka(tmp_path, properties=FORGETFUL, jvm_flags=SMALL_JVM) as cluster:
        yield cluster


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_offsets_that_expired_are_refused_as_a_start_and_put_back(
    forgetful: EmbeddedKafka, topic: TopicFactory
) -> None:
    group = Group(forgetful, topic(2, on=forgetful))
    group.commit(4, 7)
    assert group.start() == [4, 7]
    wait_until(lambda: group.committed() == [None, None], 300)
    with pytest.raises(OptionError, match=f"group '{group.id}' has no committed offsets"):
        group.start()
    group.restore(4, 7)
    assert group.start() == [4, 7]
