"""One contract, two brokers: what the simulation rests on is what Kafka does."""

import json
import time
import uuid

import pytest
from kafka import KafkaAdminClient

from spark_eos._kafka.cluster import Cluster
from spark_eos._kafka.config.client_config import ClientConfig
from spark_eos._protocol.offsets.offset_map import to_map
from spark_eos._protocol.transactions.state import TransactionState
from spark_eos.testing import EmbeddedKafka
from tests.chaos import oracle as chaos
from tests.epochs import wear
from tests.simulation import clients
from tests.simulation.broker import Broker
from tests.simulation.contract import (
    SCENARIOS,
    WORN_SCENARIOS,
    expired_id_was_never_there,
    soon,
)
from tests.simulation.driver import World, workload
from tests.simulation.faults import Schedule
from tests.simulation.oracle import visible_values
from tests.simulation.process import Process, running

SETTLE_S = 30
TIME_OUT_MS = 3_000  # enough to send and prepare on a busy machine
# A week and an hour, where nothing else is said.
FORGETFUL = {
    "transactional.id.expiration.ms": "1000",
    "transaction.remove.expired.transaction.cleanup.interval.ms": "500",
}


class Side:
    """What both have in common: names of their own, and how a producer is begun."""

    topic = "out"
    group = "g"

    def __init__(self):
        self._unique = uuid.uuid4()

    def name(self, short):
        return f"contract-{self._unique}-{short}"

    def producer(self, short, timeout_ms=60_000):
        made = self.cluster.producer(
            self.name(short), batch_id=0, timeout_ms=timeout_ms, send_timeout_ms=20_000
        )
        made.partition_count(self.topic, soon())
        made.begin(soon())
        return made

    def fates(self, transactions, deadline):
        return self.cluster.fates(transactions, deadline)

    def offsets_fate(self, offset, deadline):
        wanted = json.dumps(to_map({(self.topic, 0): offset}))
        return self.cluster.groups.offsets_fate(self.group, wanted, deadline)

    def group_metadata(self):
        return self.cluster.groups.metadata(self.group)


class InMemory(Side):
    """The broker in memory, through the clients that the simulation gives to the product."""

    def __init__(self, broker):
        super().__init__()
        self._broker = broker
        self.cluster = clients.Cluster(None)
        self.coordinator = self.cluster.coordinator

    def wear(self, short, epoch):
        self._broker.init_producer_id(self.name(short), 60_000)
        self._broker.transactions[self.name(short)].producer_epoch = epoch

    def expire(self, short):
        self._broker.expire(self.name(short))

    def timed_out(self, short, rows):
        producer = self.producer(short)
        producer.send(rows)
        prepared = producer.prepare(soon())
        self._broker.time_out(self.name(short))
        return prepared

    def visible(self):
        place = (self.topic, 0)
        entries = range(len(self._broker.log[place]))
        seen = [o for o in entries if self._broker.visible(place, o).name == "YES"]
        values = [self._broker.log[place][offset].value.decode() for offset in seen]
        if self.stable():  # the oracle goes by markers alone, and must say the same
            assert sorted(visible_values(self._broker)[0].elements()) == sorted(values)
        return values

    def stable(self):
        place = (self.topic, 0)
        return self._broker.last_stable_offset(place) == len(self._broker.log[place])


class Embedded(Side):
    """A real broker, through the product's own clients and a plain reader."""

    def __init__(self, kafka, topic):
        super().__init__()
        self._servers = kafka.bootstrap_servers
        self.group = uuid.uuid4().hex
        self.topic = topic
        self.cluster = Cluster(ClientConfig.from_options({"bootstrap.servers": self._servers}))
        self.coordinator = self.cluster.coordinator

    def wear(self, short, epoch):
        wear(self.coordinator, {self.name(short): epoch})

    def expire(self, short):
        self._wait_until(short, lambda found: found is None)

    def timed_out(self, short, rows):
        producer = self.producer(short, timeout_ms=TIME_OUT_MS)
        producer.send(rows)
        prepared = producer.prepare(soon())
        self._wait_until(short, lambda found: found.state is TransactionState.COMPLETE_ABORT)
        return prepared

    def _wait_until(self, short, is_so):
        name, deadline = self.name(short), soon(SETTLE_S * 1000)
        while not is_so(found := self.coordinator.describe([name], deadline)[name]):
            assert not deadline.passed, f"the coordinator still has {found}"
            time.sleep(0.2)

    def visible(self):
        self._wait_for_markers()
        found = chaos.committed_messages(self._servers, self.topic, settle_s=0)
        return [found[place].value().decode() for place in sorted(found)]

    def stable(self):
        self._wait_for_markers()
        return not chaos.open_partitions(self._servers, self.topic)

    def _wait_for_markers(self):
        """Of what was ended. What is open stays so: some scenarios expect it."""
        deadline = soon(SETTLE_S * 1000)
        while any(
            one.state.is_pending and one.transactional_id.startswith(self.name(""))
            for one in self.coordinator.list_open(deadline)
        ):
            assert not deadline.passed, "a transaction that was ended has no markers"
            time.sleep(0.05)


def by_name(scenario):
    return scenario.__name__


IN_MEMORY = (*SCENARIOS, *WORN_SCENARIOS, expired_id_was_never_there)


@pytest.mark.parametrize("scenario", IN_MEMORY, ids=by_name)
def test_broker_in_memory(scenario):
    broker = Broker({"out": 1})
    world = World(workload((1,)), broker=broker)
    with running(Process(role="test", world=world, schedule=Schedule())):
        scenario(InMemory(broker))


@pytest.mark.parametrize("scenario", SCENARIOS, ids=by_name)
def test_real_broker(scenario, kafka, topic):
    run_on_the_real_broker(scenario, kafka, topic())


@pytest.mark.slow
@pytest.mark.timeout(600)  # to use up all epochs is 32,767 requests
@pytest.mark.parametrize("scenario", WORN_SCENARIOS, ids=by_name)
def test_real_broker_when_epochs_run_out(scenario, kafka, topic):
    run_on_the_real_broker(scenario, kafka, topic())


def test_real_broker_that_forgets_ids(tmp_path, topic):
    with EmbeddedKafka(tmp_path, properties=FORGETFUL) as kafka:
        run_on_the_real_broker(expired_id_was_never_there, kafka, topic(on=kafka))


@pytest.fixture(scope="module", params=[0, 1])
def kafka_of_an_older_version(request, tmp_path_factory):
    """A cluster whose brokers are new, and whose transaction.version was never raised."""
    with EmbeddedKafka(tmp_path_factory.mktemp("kafka")) as kafka:
        admin = KafkaAdminClient(bootstrap_servers=kafka.bootstrap_servers)
        try:
            admin.update_features({"transaction.version": ("UNSAFE_DOWNGRADE", request.param)})
            found = admin.describe_features()["transaction.version"].get("finalized", (0, 0))
        finally:
            admin.close()
        assert found == (request.param, request.param)
        yield kafka


@pytest.mark.slow
@pytest.mark.parametrize("scenario", SCENARIOS, ids=by_name)
def test_real_broker_of_an_older_transaction_version(scenario, kafka_of_an_older_version, topic):
    kafka = kafka_of_an_older_version
    run_on_the_real_broker(scenario, kafka, topic(on=kafka))


def run_on_the_real_broker(scenario, kafka, topic):
    side = Embedded(kafka, topic)
    try:
        scenario(side)
    finally:
        side.coordinator.close()
