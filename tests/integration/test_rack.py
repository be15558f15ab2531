"""A frozen broker that still counts as alive: what asks others goes on."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import AdminClient

from spark_eos._deadline import Deadline
from spark_eos._kafka.admin.metadata import ClusterMetadata
from spark_eos._kafka.config.client_config import ClientConfig
from spark_eos._kafka.consume.visibility import fates
from spark_eos._protocol.transactions.fate import Fate
from spark_eos.testing import EmbeddedKafka
from tests.chaos.oracle import open_partitions
from tests.conftest import SMALL_JVM
from tests.integration.test_visibility import ended

if TYPE_CHECKING:
    from tests.conftest import TopicFactory

# A frozen node counts as alive for longer than the test takes: leaders send readers to it.
PROPERTIES = {
    "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
    "broker.session.timeout.ms": "300000",
    "replica.lag.time.max.ms": "300000",
}
# Without an answer each look takes 5 s, and goes on until the deadline.
QUICK_S = 30.0
DEADLINE_MS = 60_000
# librdkafka asks one broker of three, by chance: so often one of these questions meets the frozen.
QUESTIONS = 12


@pytest.fixture(scope="module")
def racks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedKafka]:
    """Three nodes, each in a rack that has the node's number."""
    folder = tmp_path_factory.mktemp("racks")
    with EmbeddedKafka(folder, nodes=3, properties=PROPERTIES, jvm_flags=SMALL_JVM) as made:
        yield made


def test_look_is_answered_while_the_follower_in_the_own_rack_is_frozen(
    racks: EmbeddedKafka, topic: TopicFactory
) -> None:
    name, servers = topic(1, on=racks), racks.bootstrap_servers
    transactions = [
        ("committed", ended(servers, "commit", name, 0)),
        ("aborted", ended(servers, "abort", name, 0)),
    ]
    # The markers are on every node: no answer depends on a node that is frozen later.
    assert not open_partitions(servers, name, settle_s=30)
    metadata = AdminClient({"bootstrap.servers": servers}).list_topics(name, timeout=20)
    place = metadata.topics[name].partitions[0]
    leader = metadata.brokers[place.leader]
    follower = next(node for node in place.replicas if node != place.leader)
    config = ClientConfig.from_options(
        {"bootstrap.servers": f"{leader.host}:{leader.port}", "client.rack": str(follower)}
    )
    racks.pause(follower)
    try:
        began = time.monotonic()
        found = fates(config, transactions, Deadline.after_ms(DEADLINE_MS))
        took_s = time.monotonic() - began
    finally:
        racks.resume(follower)
    assert found == {"committed": Fate.COMMITTED, "aborted": Fate.ABORTED}
    assert took_s < QUICK_S


def test_question_that_any_broker_can_answer_is_answered_while_one_is_frozen(
    racks: EmbeddedKafka, topic: TopicFactory
) -> None:
    name = topic(2, on=racks)
    config = ClientConfig.from_options({"bootstrap.servers": racks.bootstrap_servers})
    racks.pause(1)
    try:
        for _ in range(QUESTIONS):
            deadline = Deadline.after_ms(DEADLINE_MS)
            assert ClusterMetadata(config).partition_counts([name], deadline) == {name: 2}
            assert ClusterMetadata(config).max_transaction_timeout_ms(deadline) == 900_000
            assert deadline.remaining_ms > DEADLINE_MS / 2
    finally:
        racks.resume(1)
