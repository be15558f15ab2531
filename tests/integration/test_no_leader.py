"""A partition has no leader when a decided batch is to be completed.

Kafka 4 leaves its marker out then, and answers that the transaction is committed: its rows would
never be visible, and nobody could read past them.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from spark_eos._deadline import Deadline
from spark_eos._endtxn.commit import commit_decided
from spark_eos._kafka.config.client_config import ClientConfig
from spark_eos._kafka.coordinator.client import CoordinatorClient
from spark_eos._kafka.produce.rows import Rows
from spark_eos._kafka.produce.transactional_producer import TransactionalProducer
from spark_eos._protocol.transactions.batch import RunningBatch, TaskResult
from spark_eos._protocol.transactions.decision import decision_rows
from spark_eos._protocol.transactions.fate import Fate
from spark_eos._protocol.transactions.transaction import PreparedTransaction, TransactionRecord
from spark_eos.errors import BrokerUnreachableError
from spark_eos.testing import EmbeddedKafka
from tests.chaos.oracle import assert_exactly_once
from tests.steps import session_with

pytestmark = [pytest.mark.broker, pytest.mark.timeout(300)]
TOPIC = "alone"
NODE = 3  # the only one that has partition 0
QUERY = "0f9b7a52-64b5-4f0c-9d1e-2a5d0e6f7a81"
ID = f"spark-eos-{QUERY}-0"
WAIT_S = 60.0


def soon() -> Deadline:
    return Deadline.after_ms(WAIT_S * 1000)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[EmbeddedKafka]:
    # A node that is killed is given up soon.
    properties = {"broker.session.timeout.ms": "3000"}
    with EmbeddedKafka(tmp_path, nodes=3, properties=properties) as made:
        topic = NewTopic(
            TOPIC, 2, replica_assignment=[[NODE], [1]], config={"min.insync.replicas": "1"}
        )
        admin = AdminClient({"bootstrap.servers": made.bootstrap_servers})
        admin.create_topics([topic])[TOPIC].result(30)
        for server in made.bootstrap_servers.split(","):  # each learns of it in its own time
            wait_for_leaders(server)
        yield made


def wait_for_leaders(server: str) -> None:
    admin = AdminClient({"bootstrap.servers": server})
    deadline = soon()
    while True:
        found = admin.list_topics(timeout=20).topics.get(TOPIC)
        if found is not None and [p.leader for p in found.partitions.values()] == [NODE, 1]:
            return
        assert not deadline.passed, "the topic has no leaders"
        time.sleep(0.1)


def prepare(config: ClientConfig) -> PreparedTransaction:
    """A row for each partition, in a transaction that stays open; as a task does it."""
    producer = TransactionalProducer(config, ID, timeout_ms=300_000, send_timeout_ms=60_000)
    producer.partition_count(TOPIC, soon())
    producer.begin(soon())
    producer.send(Rows(topic=TOPIC, keys=[None, None], values=[b"a", b"b"], partitions=[0, 1]))
    return producer.prepare(soon())


def decided(prepared: PreparedTransaction) -> tuple[TransactionRecord, ...]:
    result = TaskResult(partition=0, records=2, digest="", transaction=prepared)
    batch = RunningBatch(
        query_id=QUERY,
        run_id="",
        batch_id=0,
        input_digest="",
        sink_partitions=1,
        results=(result,),
    )
    return decision_rows(batch, None, {ID: None}, datetime.now(UTC))


def wait_for_no_leader(server: str) -> None:
    admin = AdminClient({"bootstrap.servers": server})
    deadline = soon()
    while admin.list_topics(TOPIC, timeout=20).topics[TOPIC].partitions[0].leader >= 0:
        assert not deadline.passed, "the node that was killed still leads"
        time.sleep(0.1)


def test_marker_of_a_partition_without_a_leader_is_not_left_out(cluster: EmbeddedKafka) -> None:
    config = ClientConfig.from_options({"bootstrap.servers": cluster.bootstrap_servers})
    client = CoordinatorClient(config)
    session = session_with(client, QUERY, config)
    rows = decided(prepare(config))
    cluster.kill(NODE)
    servers = cluster.bootstrap_servers.split(",")
    for server in servers[: NODE - 1]:  # each of those that are left, as above
        wait_for_no_leader(server)
    with pytest.raises(BrokerUnreachableError, match="alone-0 has no leader"):
        commit_decided(session, rows, Deadline.after_ms(5_000))
    with ThreadPoolExecutor(1) as pool:
        found = pool.submit(commit_decided, session, rows, soon())
        time.sleep(1)
        assert not found.done()
        cluster.start_node(NODE)
        assert found.result().fates == {ID: Fate.COMMITTED}
    assert_exactly_once(cluster.bootstrap_servers, TOPIC, ["a", "b"])
    assert client.list_open(soon()) == []
    client.close()
