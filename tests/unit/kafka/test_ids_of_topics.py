"""A cluster that gives its topics no ids: none is made up."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING
from uuid import UUID

from spark_eos._kafka.admin import offset_reader
from spark_eos._kafka.admin.offset_reader import OffsetReader, Retries
from spark_eos._kafka.config.client_config import ClientConfig
from spark_eos._protocol.offsets.isolation import IsolationLevel
from spark_eos._protocol.offsets.subscription import Assign, Subscribe

if TYPE_CHECKING:
    import pytest

HAS_ID, ID = UUID(int=2**127 + 1), "gAAAAAAAAAAAAAAAAAAAAQ"


def test_topic_without_an_id_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    ids = {"a": HAS_ID, "b": UUID(int=0)}
    monkeypatch.setattr(
        offset_reader,
        "describe_topics",
        lambda _admin, topics, _deadline: {
            t: SimpleNamespace(topic_id=ids[t], partitions=[SimpleNamespace(id=0)]) for t in topics
        },
    )
    asked = OffsetReader(
        ClientConfig.from_options({"bootstrap.servers": "127.0.0.1:1"}),
        IsolationLevel.READ_COMMITTED,
        Retries(timeout_ms=100, at_least=1, interval_ms=10),
    )
    assert asked.partitions(Subscribe(("a", "b"))) == {("a", 0): ID, ("b", 0): None}
    assert asked.partitions(Assign((("b", 0),))) == {("b", 0): None}
