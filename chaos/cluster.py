"""Three brokers, each with a proxy in front of it for the query alone.

A broker has one more listener that only its proxy knows, and advertises the proxy's port for it:
so the query meets every fault of the network, while the brokers among themselves, the generator
and the readers do not. The embedded broker has one set of properties for all of its nodes, so
these lines go into each node's file at the moment of its start.
"""

import random
import socket
from pathlib import Path

from confluent_kafka.admin import AdminClient, NewTopic
from kafka import KafkaAdminClient, TopicPartition

from chaos.proxy import HOST, Proxies
from chaos.wait import within
from spark_eos.testing import EmbeddedKafka
from spark_eos.testing._embedded import launch

NODES = (1, 2, 3)
# Below the embedded broker's own range, and below the range of outgoing connections.
PORTS = range(12_000, 20_000)
PARTITIONS = 4
MIN_INSYNC = 2
INPUT, OUTPUT, GROUP = "bench-input", "bench-output", "bench-group"
GROUP_OFFSETS = "__consumer_offsets"
ADMIN_TIMEOUT_S = 120
MOVE_S = 20
PREFERRED = 0  # the kind of an election


class Cluster:
    """The brokers of a run."""

    def __init__(self, folder, history):
        self.proxies = Proxies(lambda **hit: history.add("frame", **hit))
        self._own_ports = dict(zip(NODES, free_ports(len(NODES)), strict=True))
        for node, port in self._own_ports.items():
            self.proxies.open(node, port)
        self.folder = Path(folder)
        self.kafka = EmbeddedKafka(
            folder, nodes=len(NODES), how=self._launch, jvm_flags=["-XX:TieredStopAtLevel=1"]
        )

    @property
    def servers(self):
        """For the bench itself: no proxy in between."""
        return self.kafka.bootstrap_servers

    @property
    def proxied_servers(self):
        """For the query."""
        return ",".join(f"{HOST}:{proxy.port}" for proxy in self.proxies.by_node.values())

    def start(self):
        self.kafka.start()
        admin = AdminClient({"bootstrap.servers": self.servers})
        config = {"min.insync.replicas": str(MIN_INSYNC)}
        topics = [NewTopic(name, PARTITIONS, 3, config=config) for name in (INPUT, OUTPUT)]
        for future in admin.create_topics(topics).values():
            future.result(ADMIN_TIMEOUT_S)

    def stop(self):
        try:
            self.kafka.stop()
        finally:
            self.proxies.close()

    def move_leaders(self, turn):
        """Let the next broker lead, or the one behind it; (how many moved, of how many)."""
        admin = KafkaAdminClient(bootstrap_servers=self.servers)
        try:
            before = _leaders_and_replicas(admin)
            wanted = {
                place: [(node + turn - 1) % len(NODES) + 1 for node in replicas]
                for place, (_, replicas) in before.items()
            }
            first = {place: nodes[0] for place, nodes in wanted.items()}
            admin.alter_partition_reassignments(wanted)

            def leaders():
                admin.elect_leaders(PREFERRED, raise_errors=False)
                return {place: now for place, (now, _) in _leaders_and_replicas(admin).items()}

            within(MOVE_S, lambda: leaders() == first)
            now = leaders()
            moved = [place for place, (old, _) in before.items() if now.get(place, old) != old]
            return len(moved), len(before)
        finally:
            admin.close()

    def partitions_on_disk(self, topic):
        """The numbers of a topic's partitions."""
        folders = self.folder.glob(f"node-*/data/{topic}-*")
        return sorted({int(folder.name.rpartition("-")[2]) for folder in folders})

    def partition_folders(self, topic, partition):
        """The replicas of a partition, on the disks of all brokers."""
        return sorted(self.folder.glob(f"node-*/data/{topic}-{partition}"))

    def _launch(self, command, console):
        return launch_behind(self.proxies, self._own_ports, command, console)


def launch_behind(proxies, own_ports, command, console):
    """Start a node with one more listener, on its own port, for which it advertises its proxy."""
    settings = Path(command[-1])
    told = dict(line.split("=", 1) for line in settings.read_text().splitlines())
    node = int(told["node.id"])
    told["listeners"] += f",QUERY://{HOST}:{own_ports[node]}"
    told["advertised.listeners"] += f",QUERY://{HOST}:{proxies.by_node[node].port}"
    told["listener.security.protocol.map"] = ",".join(
        f"{name}:PLAINTEXT" for name in ("PLAINTEXT", "CONTROLLER", "QUERY")
    )
    settings.write_text("".join(f"{name}={value}\n" for name, value in told.items()))
    return launch.supervised(command, console)


def _leaders_and_replicas(admin):
    """Of all that moves: the topics, and those of the coordinators."""
    found = {}
    for topic in admin.describe_topics([INPUT, OUTPUT, "__transaction_state", GROUP_OFFSETS]):
        for part in topic["partitions"]:
            place = TopicPartition(topic["name"], part["partition_index"])
            found[place] = (part["leader_id"], part["replica_nodes"])
    return found


def free_ports(count):
    """Ports that nobody listens on now."""
    found = []
    for port in random.SystemRandom().sample(PORTS, 200):
        with socket.socket() as probe:
            try:
                probe.bind((HOST, port))
            except OSError:
                continue
        found.append(port)
        if len(found) == count:
            return found
    raise OSError("no free ports")
