"""What two looks at a place mean, which places go together, and a name lookup that never ends."""

from __future__ import annotations

import socket
import threading
import time

import pytest

from spark_eos._deadline import Deadline
from spark_eos._kafka.consume.offset_probe import ProbeResult
from spark_eos._kafka.consume.visibility import _places, _turn, judge
from spark_eos._kafka.coordinator.wire import _resolves
from spark_eos._protocol.offsets.topic_partition import PartitionOffsets, RecordPosition
from spark_eos._protocol.transactions.fate import Fate

S = ProbeResult
# Held back by the last stable offset? What a read_committed look met? And a read_uncommitted one?
JUDGED = {
    (False, S.HERE, None): Fate.COMMITTED,
    (False, S.BEHIND, S.HERE): Fate.ABORTED,
    (False, S.BEHIND, S.BEHIND): Fate.GONE,
    (False, S.BEHIND, S.END): Fate.GONE,
    (False, S.BEHIND, S.OUTSIDE): Fate.GONE,
    (False, S.OUTSIDE, S.OUTSIDE): Fate.GONE,
    (False, S.OUTSIDE, S.HERE): Fate.GONE,
    (False, S.BEHIND, None): None,
    (False, None, S.HERE): None,
    (False, None, None): None,
    (True, None, S.HERE): Fate.OPEN,
    (True, None, S.END): Fate.GONE,
    (True, None, S.BEHIND): Fate.GONE,
    (True, None, S.OUTSIDE): Fate.GONE,
    (True, None, None): None,
}


@pytest.mark.parametrize(("looks", "fate"), JUDGED.items())
def test_judgement(
    looks: tuple[bool, ProbeResult | None, ProbeResult | None], fate: Fate | None
) -> None:
    held, committed, everything = looks
    assert judge(held=held, committed=committed, everything=everything) is fate


def offsets(partition: int, first: int, last: int) -> PartitionOffsets:
    return PartitionOffsets(
        topic="t", partition=partition, first_offset=first, last_offset=last, records=1
    )


def test_last_offsets_come_before_first_ones() -> None:
    assert _places([offsets(0, 1, 5), offsets(1, 2, 2)]) == [
        RecordPosition("t", 0, 5),
        RecordPosition("t", 1, 2),
        RecordPosition("t", 0, 1),
    ]


def test_one_turn_has_one_offset_of_a_partition() -> None:
    turn = _turn(
        {
            "a": [RecordPosition("t", 0, 5), RecordPosition("t", 1, 5)],
            "b": [RecordPosition("t", 0, 9), RecordPosition("t", 1, 9)],
            "c": [RecordPosition("t", 0, 7)],
        }
    )
    assert turn == {"a": RecordPosition("t", 0, 5), "b": RecordPosition("t", 1, 9)}


def test_name_lookup_ends_with_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    release = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_: release.wait(30))
    started = time.monotonic()
    assert not _resolves("slow.example:9092", Deadline.after_ms(100))
    assert time.monotonic() - started < 5
    assert _resolves("10.0.0.1:9092", Deadline.after_ms(100))
    assert _resolves("[::1]:9092", Deadline.after_ms(100))
    release.set()
