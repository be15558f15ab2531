"""The local cluster as tests, benchmarks and the demo see it.

    with EmbeddedKafka(folder) as kafka:
        ... kafka.bootstrap_servers ...

One node, or three with three copies of everything and two that must be in sync. In this form the
brokers cannot outlive the process that started them. All waits have an end.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Self

from spark_eos.testing._embedded import launch
from spark_eos.testing._embedded.failure import EmbeddedKafkaError
from spark_eos.testing._embedded.jars import kafka_jars
from spark_eos.testing._embedded.java import java_command
from spark_eos.testing._embedded.layout import live_processes, open_layout, write_processes
from spark_eos.testing._embedded.node import Node
from spark_eos.testing._embedded.probe import known_brokers

SIZES = (1, 3)
START_TIMEOUT_S = 60.0
# A node leaves in about a second. The last ones of three have no quorum to say goodbye to and would
# wait for minutes; killing them loses nothing that a restart does not bring back.
STOP_GRACE_S = 8.0
POLL_S = 0.05


class EmbeddedKafka:
    """A real Kafka in KRaft mode on free loopback ports, with its data in a folder.

    A folder that already holds a cluster brings that cluster back, with its data and, where they
    are free, its ports. Nodes are numbered from 1.
    """

    def __init__(
        self,
        folder: str | Path,
        nodes: int = 1,
        properties: Mapping[str, str] | None = None,
        *,
        jvm_flags: Sequence[str] = (),
        how: launch.Launch = launch.supervised,
        start_timeout_s: float = START_TIMEOUT_S,
    ) -> None:
        if nodes not in SIZES:
            raise EmbeddedKafkaError(f"nodes={nodes}: a cluster has 1 or 3 nodes")
        self.folder = Path(folder).absolute()
        self._size = nodes
        self._properties = {key: str(value) for key, value in (properties or {}).items()}
        self._jvm_flags = tuple(jvm_flags)
        self._how = how
        self._start_timeout_s = start_timeout_s
        self._nodes: dict[int, Node] = {}
        self._bootstrap_servers = ""

    @property
    def bootstrap_servers(self) -> str:
        """Addresses for a client: `127.0.0.1:port`, with commas between."""
        if not self._bootstrap_servers:
            raise EmbeddedKafkaError("the cluster was not started")
        return self._bootstrap_servers

    @property
    def pids(self) -> dict[int, int]:
        """Process ids of the nodes that run now, by node."""
        return {
            number: node.process.pid
            for number, node in self._nodes.items()
            if node.process is not None
        }

    def start(self) -> Self:
        """Start every node, and return when each one sees all of them."""
        jars = kafka_jars()
        java_command()  # one clear line now, instead of one from each node's thread
        running = live_processes(self.folder)
        if running:
            pids = sorted(process.pid for process in running.values())
            raise EmbeddedKafkaError(f"{self.folder} is in use by the brokers with pids {pids}")
        layout = open_layout(self.folder, self._size)
        self._bootstrap_servers = layout.bootstrap_servers
        self._nodes = {
            address.node: Node(
                folder=self.folder / f"node-{address.node}",
                address=address,
                layout=layout,
                jars=jars,
                own_properties=self._properties,
                own_flags=self._jvm_flags,
                launch=self._how,
            )
            for address in layout.nodes
        }
        try:
            with ThreadPoolExecutor(self._size) as pool:
                list(pool.map(Node.prepare, self._nodes.values()))
            self._start(self._nodes, seen=set(self._nodes))
        except BaseException:
            self.stop(grace_s=0.0)
            raise
        return self

    def stop(self, grace_s: float = STOP_GRACE_S) -> None:
        """Stop every node, all at once; the data stays."""
        self._end(signal.SIGTERM, grace_s, *self._nodes.values())

    def start_node(self, node: int) -> None:
        """Start a node again, on its ports and its data, and wait until it has joined."""
        self._node(node).prepare()
        self._start([node], seen={node})

    def stop_node(self, node: int) -> None:
        """Stop a node in order, as an operator does before maintenance."""
        self._end(signal.SIGTERM, STOP_GRACE_S, self._node(node))

    def kill(self, node: int) -> None:
        """SIGKILL: the node is gone without a word."""
        self._end(signal.SIGKILL, STOP_GRACE_S, self._node(node))

    def pause(self, node: int) -> None:
        """SIGSTOP: the node is silent, its connections stay open."""
        self._node(node).signal(signal.SIGSTOP)

    def resume(self, node: int) -> None:
        """SIGCONT: the node goes on, as if no time had passed."""
        self._node(node).signal(signal.SIGCONT)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def _node(self, number: int) -> Node:
        if number not in self._nodes:
            raise EmbeddedKafkaError(f"no node {number}: there are {sorted(self._nodes)}")
        return self._nodes[number]

    def _start(self, numbers: Mapping[int, Node] | list[int], seen: set[int]) -> None:
        """Start nodes and wait until each of them knows the brokers in `seen`."""
        deadline = time.monotonic() + self._start_timeout_s
        for number in numbers:
            self._node(number).start()
        self._remember()
        for number in numbers:
            node = self._node(number)
            while not seen <= known_brokers(node.address.port):
                if node.process is None:
                    raise EmbeddedKafkaError(f"node {number} ended at its start\n{node.tail()}")
                if time.monotonic() > deadline:
                    raise EmbeddedKafkaError(
                        f"node {number} was not ready in {self._start_timeout_s:.0f} s\n"
                        f"{node.tail()}"
                    )
                time.sleep(POLL_S)

    def _end(self, number: signal.Signals, grace_s: float, *nodes: Node) -> None:
        if nodes:
            with ThreadPoolExecutor(len(nodes)) as pool:
                list(pool.map(lambda node: node.end(number, grace_s), nodes))
            self._remember()

    def _remember(self) -> None:
        processes = {number: node.process for number, node in self._nodes.items()}
        write_processes(
            self.folder, {number: kept for number, kept in processes.items() if kept is not None}
        )
