"""The settings of a node follow from the addresses of all, and the caller has the last word."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_eos.testing._embedded.settings import NodeAddress, properties_text, server_properties

NODES = [NodeAddress(node=n, port=20_000 + n, controller_port=21_000 + n) for n in (1, 2, 3)]
DATA = Path("/data")


def test_one_node_keeps_one_copy() -> None:
    settings = server_properties(NODES[0], NODES[:1], DATA, {})
    assert settings["transaction.state.log.replication.factor"] == "1"
    assert settings["min.insync.replicas"] == settings["transaction.state.log.min.isr"] == "1"


@pytest.mark.parametrize("node", NODES)
def test_three_nodes_keep_three_copies_and_know_each_other(node: NodeAddress) -> None:
    settings = server_properties(node, NODES, DATA, {})
    assert settings["controller.quorum.voters"].split(",") == [
        "1@127.0.0.1:21001",
        "2@127.0.0.1:21002",
        "3@127.0.0.1:21003",
    ]
    for key in ("transaction.state.log", "offsets.topic", "default"):
        assert settings[f"{key}.replication.factor"] == "3"
    assert settings["min.insync.replicas"] == settings["transaction.state.log.min.isr"] == "2"
    assert settings["broker.rack"] == str(node.node)
    assert settings["listeners"].startswith(f"PLAINTEXT://{node.client},")


def test_own_settings_win() -> None:
    own = {"auto.create.topics.enable": "true", "some.new": "x"}
    settings = server_properties(NODES[0], NODES, DATA, own)
    assert settings["auto.create.topics.enable"] == "true"
    assert settings["some.new"] == "x"


def test_backslash_is_escaped_for_java() -> None:
    assert properties_text({"a": "x\\d"}) == "a=x\\\\d\n"
