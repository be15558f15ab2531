"""Test process. The files in a cluster's folder.

    <folder>/cluster.json           cluster id and ports, written once
    <folder>/processes.json         pid and start of each JVM, rewritten at each start and stop
    <folder>/node-<n>/              server.properties, log4j2.xml, server.log, console.log, data/

The JSON files have a version, because a folder may be older than the program that opens it.
"""

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
# Below Linux' range for outgoing connections. So no client gets a port between its choice and the
# start of the broker.
PORTS = range(20_000, 32_000)
PORT_TRIES = 200


@dataclass(frozen=True, slots=True)
class Layout:
    """The id and the addresses of a cluster."""

    cluster_id: str
    nodes: tuple[NodeAddress, ...]

    @property
    def bootstrap_servers(self) -> str:
        """The addresses for a client."""
        return ",".join(address.client for address in self.nodes)


def open_layout(folder: Path, nodes: int) -> Layout:
    """The layout of a folder, new or stored. A taken port means new ports."""
    folder.mkdir(parents=True, exist_ok=True)
    stored = read_layout(folder)
    if stored is not None and len(stored.nodes) != nodes:
        raise EmbeddedKafkaError(
            "{folder} holds a cluster of {stored} nodes, not {nodes}. Ask for {stored} nodes, or"
            " take another folder",
            folder=folder,
            stored=len(stored.nodes),
            nodes=nodes,
        )
    if stored is not None and all(
        _free(port) for node in stored.nodes for port in (node.port, node.controller_port)
    ):
        return stored
    layout = Layout(stored.cluster_id if stored else _cluster_id(), _addresses(nodes))
    content = {"cluster_id": layout.cluster_id, "nodes": [asdict(node) for node in layout.nodes]}
    _write(folder / "cluster.json", content)
    return layout


def read_layout(folder: Path) -> Layout | None:
    """The stored layout, or None if the folder has no cluster."""
    content = _read(folder / "cluster.json")
    if content is None:
        return None
    return Layout(content["cluster_id"], tuple(NodeAddress(**node) for node in content["nodes"]))


def write_processes(folder: Path, processes: Mapping[int, ProcessIdentity]) -> None:
    """Store which processes run the nodes."""
    content = {str(node): asdict(process) for node, process in processes.items()}
    _write(folder / "processes.json", {"processes": content})


def live_processes(folder: Path) -> dict[int, ProcessIdentity]:
    """The stored processes that still run, by node."""
    content = _read(folder / "processes.json") or {"processes": {}}
    processes = {int(node): ProcessIdentity(**kept) for node, kept in content["processes"].items()}
    return {node: process for node, process in processes.items() if process.alive()}


def _read(path: Path) -> dict[str, Any] | None:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise EmbeddedKafkaError(
            "{path} is damaged ({error}): take another folder", path=path, error=error
        ) from error
    if not isinstance(content, dict) or content.get("version") != VERSION:
        raise EmbeddedKafkaError(
            "{path} is not of version {version}: take another folder", path=path, version=VERSION
        )
    return content


def _write(path: Path, content: Mapping[str, Any]) -> None:
    staging = path.with_suffix(".new")
    staging.write_text(json.dumps({"version": VERSION, **content}, indent=1), encoding="utf-8")
    staging.replace(path)


def _cluster_id() -> str:
    """A uuid in Kafka's form. Kafka's tools would take a leading dash for an option."""
    while True:
        text = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode("ascii").rstrip("=")
        if not text.startswith("-"):
            return text


def _addresses(nodes: int) -> tuple[NodeAddress, ...]:
    ports = iter(_free_ports(2 * nodes))
    numbers = range(1, nodes + 1)
    return tuple(
        NodeAddress(node=n, port=next(ports), controller_port=next(ports)) for n in numbers
    )


def _free_ports(count: int) -> list[int]:
    # Test runs seed the shared generator, so they would all try the same ports first.
    candidates = random.SystemRandom().sample(PORTS, PORT_TRIES)
    free = [port for port in candidates if _free(port)][:count]
    if len(free) < count:
        raise EmbeddedKafkaError(
            "no {count} free ports among {tried} tried ones on {host}",
            count=count,
            tried=PORT_TRIES,
            host=HOST,
        )
    return free


def _free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True
