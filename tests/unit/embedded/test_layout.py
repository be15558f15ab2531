"""A folder remembers its cluster, and a pid never names a stranger."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from spark_eos.testing import EmbeddedKafka, EmbeddedKafkaError
from spark_eos.testing._embedded.layout import (
    live_processes,
    open_layout,
    read_layout,
    write_processes,
)
from spark_eos.testing._embedded.process import ProcessIdentity


def _me() -> ProcessIdentity:
    identity = ProcessIdentity.of(os.getpid())
    assert identity is not None
    return identity


def test_folder_keeps_id_and_ports(tmp_path: Path) -> None:
    first = open_layout(tmp_path, nodes=3)
    assert open_layout(tmp_path, nodes=3) == first == read_layout(tmp_path)
    ports = {port for node in first.nodes for port in (node.port, node.controller_port)}
    assert len(ports) == 6


def test_taken_port_gives_new_ports_to_the_same_cluster(tmp_path: Path) -> None:
    first = open_layout(tmp_path, nodes=1)
    with socket.create_server(("127.0.0.1", first.nodes[0].port)):
        second = open_layout(tmp_path, nodes=1)
    assert second.cluster_id == first.cluster_id
    assert second.nodes != first.nodes


def test_other_number_of_nodes_is_refused(tmp_path: Path) -> None:
    open_layout(tmp_path, nodes=1)
    with pytest.raises(EmbeddedKafkaError, match="holds a cluster of 1 nodes, not 3"):
        open_layout(tmp_path, nodes=3)


@pytest.mark.parametrize("content", ["{", "[]", '{"version": 99}'])
def test_unreadable_folder_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "cluster.json").write_text(content)
    with pytest.raises(EmbeddedKafkaError, match="take another folder"):
        open_layout(tmp_path, nodes=1)


def test_stored_layout_of_version_1_stays_readable(tmp_path: Path) -> None:
    (tmp_path / "cluster.json").write_text(
        '{"version": 1, "cluster_id": "x", "nodes": '
        '[{"node": 1, "port": 20001, "controller_port": 20002}]}'
    )
    layout = read_layout(tmp_path)
    assert layout is not None
    assert layout.bootstrap_servers == "127.0.0.1:20001"


def test_live_process_is_found_again(tmp_path: Path) -> None:
    write_processes(tmp_path, {1: _me()})
    assert live_processes(tmp_path) == {1: _me()}


def test_recycled_pid_is_not_taken_for_the_broker(tmp_path: Path) -> None:
    recycled = replace(_me(), started="another moment")
    write_processes(tmp_path, {1: recycled})
    assert live_processes(tmp_path) == {}
    assert not recycled.signal(signal.SIGKILL)


def test_zombie_counts_as_gone() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        identity = ProcessIdentity.of(child.pid)
        assert identity is not None
        assert identity.alive()
        assert identity.signal(signal.SIGKILL)
        assert identity.wait(timeout_s=5.0)
        assert child.returncode is None  # nobody has reaped it yet


@pytest.mark.parametrize("nodes", [0, 2, 4])
def test_cluster_of_other_size_is_refused(tmp_path: Path, nodes: int) -> None:
    with pytest.raises(EmbeddedKafkaError, match="1 or 3 nodes"):
        EmbeddedKafka(tmp_path, nodes=nodes)
