"""What a fault says of itself is true, and it is not given where nobody would feel it."""

from types import SimpleNamespace

import pytest

from chaos import cluster, cluster_faults, wait
from chaos.cluster import Cluster
from chaos.deck import Draw
from chaos.faults import FAULTS
from chaos.workload import NotNow, World, last_looks

ON_THE_DRIVER = [
    *("driver-kill", "driver-stop", "driver-pause", "driver-kill-at", "zombie-driver"),
    *("time-out-down", "time-out-frozen", "torn-by-time-out", "worker-kill-at", "power-cut"),
    *("clock-skew", "executor-kill", "executor-pause", "worker-kill", "worker-pause"),
    *("restored-backup", "copied-checkpoint"),
]


class Admin:
    """A cluster of three partitions; elections give a leader only to the first of them."""

    def __init__(self, **_):
        self.replicas = {number: [1, 2, 3] for number in range(3)}
        self.leaders = dict.fromkeys(self.replicas, 1)

    def describe_topics(self, topics):
        parts = [
            {"partition_index": number, "leader_id": self.leaders[number], "replica_nodes": nodes}
            for number, nodes in self.replicas.items()
        ]
        return [{"name": topics[0], "partitions": parts}]

    def alter_partition_reassignments(self, wanted):
        self.replicas |= {place.partition: nodes for place, nodes in wanted.items()}

    def elect_leaders(self, *_, **__):
        self.leaders[0] = self.replicas[0][0]

    def close(self):
        pass


class Stubborn(Admin):
    """No leader moves."""

    def elect_leaders(self, *_, **__):
        pass


def first_step(name, world):
    return next(FAULTS[name](world, Draw(1, name, 0)))


@pytest.fixture
def world():
    brokers = SimpleNamespace(
        servers="here:1", move_leaders=lambda turn: Cluster.move_leaders(brokers, turn)
    )
    return SimpleNamespace(cluster=brokers)


def test_move_of_leaders_tells_how_many_moved(world, monkeypatch):
    monkeypatch.setattr(cluster, "KafkaAdminClient", Admin)
    monkeypatch.setattr(cluster, "MOVE_S", 0.2)
    assert first_step("leader-move", world)[0].startswith("1 of 3 partitions")


def test_move_of_no_leader_is_no_fault(world, monkeypatch):
    monkeypatch.setattr(cluster, "KafkaAdminClient", Stubborn)
    monkeypatch.setattr(cluster, "MOVE_S", 0.2)
    with pytest.raises(NotNow, match="no partition got another leader"):
        first_step("leader-move", world)


@pytest.mark.parametrize("name", ON_THE_DRIVER)
def test_driver_that_has_ended_gets_no_fault(world, name):
    world.supervisor = SimpleNamespace(driver=SimpleNamespace(number=7, runs=False))
    world.driver = lambda: World.driver(world)
    world.driver_that_times_out = lambda: World.driver_that_times_out(world)
    world.transaction_timeout_s = 1.0
    world.clock = SimpleNamespace(works=True)
    world.disk = SimpleNamespace(image=True)
    with pytest.raises(NotNow, match="driver 7 has just ended"):
        first_step(name, world)


@pytest.mark.parametrize("name", cluster_faults.FRAME_FAULTS)
def test_fault_of_requests_names_seconds_only_where_they_count(world, name):
    assert first_step(name, world)[0].endswith(" s") == (name in ("net-delay", "net-repeat"))


def test_last_looks_tell_what_did_not_come(monkeypatch):
    monkeypatch.setattr(wait, "POLL_S", 0.01)
    sampler = SimpleNamespace(whole_since=5.0)
    reader = SimpleNamespace(places={(0, 1)})
    rows = [[0, 1, "k", "v"], [0, 2, "k", "v"]]
    assert last_looks(sampler, reader, 4.0, rows[:1], timeout=0.1) == []
    sample, row = last_looks(sampler, reader, 6.0, rows, timeout=0.1)
    assert "no whole sample" in sample
    assert "did not get to 1 rows" in row
