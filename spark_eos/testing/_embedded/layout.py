"""What a cluster's folder remembers: who the nodes are, and which processes run them.

    <folder>/cluster.json           cluster id and ports, written once
    <folder>/processes.json         pid and start of each JVM, rewritten at each start and stop
    <folder>/node-<n>/              server.properties, log4j2.xml, server.log, console.log, data/

Both files carry a version: a folder may be older than the program that opens it.
"""

from __future__ import annotations

import base64
import json
import random
import socket
import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from spark_eos.testing._embedded.failure import EmbeddedKafkaError
from spark_eos.testing._embedded.process import ProcessIdentity
from spark_eos.testing._embedded.settings import HOST, NodeAddress

VERSION = 1
# Below the range from which Linux takes the ports of outgoing connections, so that between the
# choice of a port and the start of the broker no client on this machine is given it.
PORTS = range(20_000, 32_000)
PORT_TRIES = 200


@dataclass(frozen=True, slots=True)
class Layout:
    """Identity of a cluster."""

    cluster_id: str
    nodes: tuple[NodeAddress, ...]

    @property
    def bootstrap_servers(self) -> str:
        """What a client is given."""
        return ",".join(address.client for address in self.nodes)


def open_layout(folder: Path, nodes: int) -> Layout:
    """Layout of a folder: a new one, or the stored one, with new ports if an old one is taken."""
    folder.mkdir(parents=True, exist_ok=True)
    stored = read_layout(folder)
    if stored is None:
        layout = Layout(_cluster_id(), _addresses(nodes))
    elif len(stored.nodes) != nodes:
        raise EmbeddedKafkaError(
            f"{folder} holds a cluster of {len(stored.nodes)} nodes, not {nodes}: "
            "ask for that number, or take another folder"
        )
    elif all(_free(port) for node in stored.nodes for port in (node.port, node.controller_port)):
        return stored
    else:
        layout = Layout(stored.cluster_id, _addresses(nodes))
    content = {"cluster_id": layout.cluster_id, "nodes": [asdict(node) for node in layout.nodes]}
    _write(folder / "cluster.json", content)
    return layout


def read_layout(folder: Path) -> Layout | None:
    """The stored layout, or None where there is no cluster in the folder."""
    content = _read(folder / "cluster.json")
    if content is None:
        return None
    return Layout(content["cluster_id"], tuple(NodeAddress(**node) for node in content["nodes"]))


def write_processes(folder: Path, processes: Mapping[int, ProcessIdentity]) -> None:
    """Remember which processes run the nodes."""
    content = {str(node): asdict(process) for node, process in processes.items()}
    _write(folder / "processes.json", {"processes": content})


def live_processes(folder: Path) -> dict[int, ProcessIdentity]:
    """The remembered processes that still run, by node."""
    content = _read(folder / "processes.json") or {"processes": {}}
    processes = {int(node): ProcessIdentity(**kept) for node, kept in content["processes"].items()}
    return {node: process for node, process in processes.items() if process.alive()}


def _read(path: Path) -> dict[str, Any] | None:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise EmbeddedKafkaError(f"{path} is damaged ({error}): take another folder") from error
    if not isinstance(content, dict) or content.get("version") != VERSION:
        raise EmbeddedKafkaError(f"{path} is not of version {VERSION}: take another folder")
    return content


def _write(path: Path, content: Mapping[str, Any]) -> None:
    staging = path.with_suffix(".new")
    staging.write_text(json.dumps({"version": VERSION, **content}, indent=1), encoding="utf-8")
    staging.replace(path)


def _cluster_id() -> str:
    """A uuid as Kafka writes it. A leading dash would look like an option to its tools."""
    while True:
        text = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode("ascii").rstrip("=")
        if not text.startswith("-"):
            return text


def _addresses(nodes: int) -> tuple[NodeAddress, ...]:
    ports = _free_ports(2 * nodes)
    return tuple(
        NodeAddress(node=node, port=ports[2 * node - 2], controller_port=ports[2 * node - 1])
        for node in range(1, nodes + 1)
    )


def _free_ports(count: int) -> list[int]:
    # Not the shared generator: test runs seed it, and would all try the same ports first.
    candidates = random.SystemRandom().sample(PORTS, PORT_TRIES)
    free = [port for port in candidates if _free(port)][:count]
    if len(free) < count:
        raise EmbeddedKafkaError(f"no {count} free ports among {PORT_TRIES} tried on {HOST}")
    return free


def _free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True
