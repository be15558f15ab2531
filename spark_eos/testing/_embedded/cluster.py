"""Test process. The local cluster: one node, or three with 3 replicas and min.insync.replicas 2.

    with EmbeddedKafka(folder) as kafka:
        ... kafka.bootstrap_servers ...

These brokers cannot outlive the process that started them. Every wait has a limit.
"""

import signal
import time
from collections.abc import Collection, Mapping, Sequence
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
from spark_eos.testing._embedded.process import ProcessIdentity

SIZES = (1, 3)
START_TIMEOUT_S = 60.0
# A node stops in about a second. The last of three nodes have no quorum and would wait for minutes.
# They are killed, and a restart brings their data back.
STOP_GRACE_S = 8.0
POLL_S = 0.05


class EmbeddedKafka:
    """A real Kafka in KRaft mode on free loopback ports, with its data in a folder.

    A folder that has a cluster brings it back with its data and, if they are free, its ports. Nodes
    are numbered from 1.
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
            raise EmbeddedKafkaError("a cluster has 1 or 3 nodes, not {nodes}", nodes=nodes)
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
        """The addresses for a client: `127.0.0.1:port`, separated by commas."""
        if not self._bootstrap_servers:
            raise EmbeddedKafkaError("the cluster was not started: call start() first")
        return self._bootstrap_servers

    @property
    def pids(self) -> dict[int, int]:
        """The process ids of the running nodes, by node."""
        return {number: process.pid for number, process in self._processes().items()}

    def start(self) -> Self:
        """Start every node. Return when each node knows all of them."""
        jars = kafka_jars()
        java_command()  # one error now, instead of one from the thread of each node
        running = live_processes(self.folder)
        if running:
            raise EmbeddedKafkaError(
                "{folder} is in use by the brokers with pids {pids}. Stop them, or take another"
                " folder",
                folder=self.folder,
                pids=sorted(process.pid for process in running.values()),
            )
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
        """Stop all nodes at the same time. The data stays."""
        self._end(signal.SIGTERM, grace_s, *self._nodes.values())

    def start_node(self, node: int) -> None:
        """Start a node again, with its ports and its data, and wait until it has joined."""
        self._node(node).prepare()
        self._start([node], seen={node})

    def stop_node(self, node: int) -> None:
        """Stop a node cleanly, as before maintenance."""
        self._end(signal.SIGTERM, STOP_GRACE_S, self._node(node))

    def kill(self, node: int) -> None:
        """Send SIGKILL: the node ends without a clean shutdown."""
        self._end(signal.SIGKILL, STOP_GRACE_S, self._node(node))

    def pause(self, node: int) -> None:
        """Send SIGSTOP: the node does not answer, but its connections stay open."""
        self._node(node).signal(signal.SIGSTOP)

    def resume(self, node: int) -> None:
        """Send SIGCONT: the node continues."""
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

    def _processes(self) -> dict[int, ProcessIdentity]:
        found = {number: node.process for number, node in self._nodes.items()}
        return {number: process for number, process in found.items() if process is not None}

    def _node(self, number: int) -> Node:
        if number not in self._nodes:
            known = sorted(self._nodes)
            raise EmbeddedKafkaError("no node {node}: there are {known}", node=number, known=known)
        return self._nodes[number]

    def _start(self, numbers: Collection[int], seen: set[int]) -> None:
        """Start nodes, and wait until each of them knows the brokers in `seen`."""
        deadline = time.monotonic() + self._start_timeout_s
        for number in numbers:
            self._node(number).start()
        self._remember()
        for number in numbers:
            node = self._node(number)
            while not seen <= known_brokers(node.address.port):
                if node.process is None:
                    raise EmbeddedKafkaError(
                        "node {node} ended at its start\n{tail}", node=number, tail=node.tail()
                    )
                if time.monotonic() > deadline:
                    raise EmbeddedKafkaError(
                        "node {node} was not ready after {timeout_s:.0f} s\n{tail}",
                        node=number,
                        timeout_s=self._start_timeout_s,
                        tail=node.tail(),
                    )
                time.sleep(POLL_S)

    def _end(self, number: signal.Signals, grace_s: float, *nodes: Node) -> None:
        if nodes:
            with ThreadPoolExecutor(len(nodes)) as pool:
                list(pool.map(lambda node: node.end(number, grace_s), nodes))
            self._remember()

    def _remember(self) -> None:
        write_processes(self.folder, self._processes())
