"""A query with an empty log, on a cluster that cannot be asked what it has committed.

No answer must not be taken for "nothing was committed": the query does not start.
"""

import time
import uuid
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from confluent_kafka.admin import AdminClient

from spark_eos._deadline import Deadline
from spark_eos._kafka.config.client_config import ClientConfig
from spark_eos._kafka.coordinator.client import CoordinatorClient
from spark_eos._kafka.produce.rows import Rows
from spark_eos._kafka.produce.transactional_producer import TransactionalProducer
from spark_eos._protocol.transactions.transactional_id import driver_id
from spark_eos._recovery.ownership import Ownership
from spark_eos.errors import BrokerUnreachableError, OptionError, StaleLogError
from spark_eos.testing import EmbeddedKafka
from tests.steps import session_with
from tests.unit.protocol.builders import record

QUERY = "0f9b7a52-64b5-4f0c-9d1e-2a5d0e6f7a81"
ID = driver_id("spark-eos", QUERY)
TOPIC = "__transaction_state"
WAIT_S = 60.0


def soon(seconds=WAIT_S):
    return Deadline.after_ms(seconds * 1000)


def claim(config, coordinator, location, query=QUERY):
    return Ownership(session_with(coordinator, query, config, log=location))


def decide_somewhere(owner):
    """A driver starts, and its decision moves the epoch of the query."""
    owner.take_over(soon())
    token = owner.next_token(owner.coordinator.describe([ID], soon()), soon())
    assert owner.coordinator.move_driver(ID, token, soon()) is not None


class Unauthorized(CoordinatorClient):
    """A user who may describe no id, and so is told of none in a list."""

    def describe(self, transactional_ids, _deadline):
        raise OptionError(f"the cluster does not allow DescribeTransactions of {transactional_ids}")

    def list_committed(self, _deadline):
        return []


def test_user_who_may_not_describe_the_id_does_not_start_the_query(kafka, tmp_path):
    config = ClientConfig.from_options({"bootstrap.servers": kafka.bootstrap_servers})
    with closing(Unauthorized(config)) as coordinator:
        owner = claim(config, coordinator, tmp_path / "log")
        with pytest.raises(OptionError, match="does not allow DescribeTransactions"):
            owner.take_over(soon())
        assert not owner.log.knows(QUERY)


class OlderRelease:
    """Its log has no token, and Kafka knows the ids of its tasks and none of the query itself."""

    def __init__(self, kafka, topic):
        self.query = str(uuid.uuid4())
        self.config = ClientConfig.from_options({"bootstrap.servers": kafka.bootstrap_servers})
        self._topic = topic

    def commit(self, batch_id):
        """A batch of one transaction; returns its row, for the log."""
        name = f"spark-eos-{self.query}-0"
        producer = TransactionalProducer(
            self.config, name, timeout_ms=60_000, send_timeout_ms=30_000
        )
        producer.partition_count(self._topic, soon())
        producer.begin(soon())
        producer.send(Rows(topic=self._topic, keys=[None], values=[b"row"]))
        prepared = producer.prepare(soon())
        with closing(CoordinatorClient(self.config)) as coordinator:
            coordinator.end([prepared.identity], committed=True, deadline=soon())
        return replace(
            record(),
            query_id=self.query,
            batch_id=batch_id,
            identity=prepared.identity,
            partitions=prepared.partitions,
            entry_timestamp=datetime.now(UTC),
        )


@pytest.fixture
def older_release(kafka, topic):
    return OlderRelease(kafka, topic(1))


@pytest.mark.parametrize("batches_in_the_log", [0, 1])
def test_log_of_an_older_release_that_is_lost_stops_the_query(
    older_release, tmp_path, batches_in_the_log
):
    rows = [older_release.commit(0), older_release.commit(1)]
    config, query = older_release.config, older_release.query
    with closing(CoordinatorClient(config)) as coordinator:
        owner = claim(config, coordinator, tmp_path / "log", query)
        for row in rows[:batches_in_the_log]:
            owner.log.append(query, row.batch_id, [row])
        with pytest.raises(StaleLogError, match=r"spark-eos-.*-0 was committed in Kafka since"):
            owner.take_over(soon())


def test_log_of_an_older_release_is_gone_on_with(older_release, tmp_path):
    row = older_release.commit(0)
    config, query = older_release.config, older_release.query
    with closing(CoordinatorClient(config)) as coordinator:
        owner = claim(config, coordinator, tmp_path / "log", query)
        owner.log.append(query, row.batch_id, [row])
        owner.take_over(soon())
        assert owner.log.driver(query) is not None


def node_of(name, servers):
    """Kafka's own rule: the hash of a Java string, modulo the number of partitions."""
    code = 0
    for letter in name:
        code = (31 * code + ord(letter)) & 0xFFFFFFFF
    code = abs(code - (1 << 32) if code >> 31 else code)
    partitions = (
        AdminClient({"bootstrap.servers": servers}).list_topics(TOPIC, WAIT_S).topics[TOPIC]
    )
    return partitions.partitions[code % len(partitions.partitions)].leader


# kafka-python forgets to close a socket to a node that dies while it connects.
@pytest.mark.filterwarnings("ignore:Exception ignored in. <socket")
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_query_whose_coordinator_is_nobody_is_not_started(tmp_path):
    properties = {
        "broker.session.timeout.ms": "3000",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
    }
    with EmbeddedKafka(tmp_path / "kafka", nodes=3, properties=properties) as cluster:
        config = ClientConfig.from_options({"bootstrap.servers": cluster.bootstrap_servers})
        with closing(CoordinatorClient(config)) as coordinator:
            decide_somewhere(claim(config, coordinator, tmp_path / "log"))
        node = node_of(ID, cluster.bootstrap_servers)
        cluster.kill(node)
        with closing(CoordinatorClient(config)) as coordinator:
            lost = claim(config, coordinator, tmp_path / "empty")
            began = time.monotonic()
            for _ in range(2):  # while the node is missed, and when it is known to be gone
                with pytest.raises(BrokerUnreachableError, match=ID):
                    lost.take_over(soon(8))
            assert time.monotonic() - began > 3, "the cluster had no time to give the node up"
            assert not lost.log.knows(QUERY)
        cluster.start_node(node)
        with (
            closing(CoordinatorClient(config)) as coordinator,
            pytest.raises(StaleLogError, match="Kafka knows of later runs"),
        ):
            claim(config, coordinator, tmp_path / "empty").take_over(soon())
