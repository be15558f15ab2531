"""An end that lies before what was read: for how long it is not believed."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from spark_eos._kafka.admin import offset_reader
from spark_eos._kafka.admin.offset_reader import OffsetReader, Retries
from spark_eos._kafka.config.client_config import ClientConfig
from spark_eos._protocol.offsets.isolation import IsolationLevel

if TYPE_CHECKING:
    from collections.abc import Callable

    from spark_eos._protocol.offsets.topic_partition import Offsets

PLACE, KNOWN = ("t", 0), 100


def reader(answer: Callable[[], int], *, timeout_ms: int) -> tuple[OffsetReader, list[float]]:
    """A reader whose broker answers so, and when it was asked at read_committed."""
    found = OffsetReader(
        ClientConfig.from_options({"bootstrap.servers": "127.0.0.1:1"}),
        IsolationLevel.READ_COMMITTED,
        Retries(timeout_ms=timeout_ms, at_least=3, interval_ms=10),
    )
    asked: list[float] = []

    def listed(specs: object, isolation: object = None) -> Offsets:
        if isolation is None:
            asked.append(time.monotonic())
        return {PLACE: answer()}

    found._list = listed  # type: ignore[method-assign]
    return found, asked


def test_new_leader_has_seconds_to_learn_where_its_log_ends() -> None:
    started = time.monotonic()
    asked, _ = reader(lambda: KNOWN if time.monotonic() - started > 1 else 90, timeout_ms=60_000)
    assert asked.latest_not_behind([PLACE], {PLACE: KNOWN}) == {PLACE: KNOWN}


def test_loss_is_called_one_after_a_last_look_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offset_reader, "OUTDATED_S", 0.5)
    found, asked = reader(lambda: 90, timeout_ms=60_000)
    assert found.latest_not_behind([PLACE], {PLACE: KNOWN}) == {PLACE: 90}
    assert asked[-1] - asked[0] >= 0.45


def test_limit_of_the_user_is_kept_and_the_number_of_looks_too() -> None:
    started = time.monotonic()
    found, asked = reader(lambda: 90, timeout_ms=1)
    assert found.latest_not_behind([PLACE], {PLACE: KNOWN}) == {PLACE: 90}
    assert len(asked) >= 3
    assert time.monotonic() - started < 4
