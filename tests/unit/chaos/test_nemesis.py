"""The nemesis: the same seed, the same faults; what it breaks it heals; what it cannot it says."""

import itertools
import time

import pytest

from tests.chaos.bench import nemesis
from tests.chaos.bench.cluster_faults import clock_jump
from tests.chaos.bench.faults import FAULTS
from tests.chaos.bench.history import History, load
from tests.chaos.bench.nemesis import Nemesis, schedule
from tests.chaos.bench.workload import NotNow


class World:
    """A world in which batches complete all the time."""

    class clock:  # noqa: N801 - it is an attribute
        works = False

    def __init__(self):
        self.told = []

    @property
    def last_completed_at(self):
        return time.monotonic()


def choices(seed, count=30):
    chosen = itertools.islice(schedule(seed, FAULTS), count)
    return [(name, rng.random(), wait, calm) for name, rng, wait, calm in chosen]


def test_same_seed_same_faults():
    assert choices(7) == choices(7)
    assert choices(7) != choices(8)


def test_every_kind_comes_once_before_one_comes_again():
    names = [choice[0] for choice in choices(3, 2 * len(FAULTS))]
    assert sorted(names[: len(FAULTS)]) == sorted(FAULTS)
    assert sorted(names[len(FAULTS) :]) == sorted(FAULTS)


def run(tmp_path, monkeypatch, fault, seconds=0.2, faults=None):
    monkeypatch.setattr(nemesis, "FAULTS", {"some": fault})
    monkeypatch.setattr(nemesis, "CALM_S", (0.0, 0.01))
    history = History(tmp_path / "history.jsonl")
    world = World()
    try:
        Nemesis(world, history, 1, ["some"], 1.0).run_until(time.monotonic() + seconds, faults)
    finally:
        history.close()
    return world, [e for e in load(history.path) if e["kind"] == "fault"]


def test_gives_and_heals_and_writes_both_down(tmp_path, monkeypatch):
    def fault(world, rng):
        yield "somebody", 0.02
        world.told.append("broken")
        yield
        world.told.append("healed")

    world, events = run(tmp_path, monkeypatch, fault, faults=2)
    assert world.told == ["broken", "healed"] * 2
    assert [e["phase"] for e in events] == ["start", "end"] * 2
    assert events[1]["at"] - events[0]["at"] >= 0.02
    assert events[0]["id"] == events[1]["id"] != events[2]["id"]


def test_heals_also_when_it_is_interrupted(tmp_path, monkeypatch):
    told = []

    def fault(world, rng):
        yield "somebody", 0.0
        told.append("broken")
        yield
        told.append("healed")

    def interrupted(_seconds):
        raise KeyboardInterrupt

    monkeypatch.setattr(nemesis.time, "sleep", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, monkeypatch, fault)
    assert told == ["broken", "healed"]


def test_says_what_it_cannot_give(tmp_path, monkeypatch):
    _, events = run(tmp_path, monkeypatch, clock_jump)
    assert [(e["phase"], "libfaketime" in e["detail"]) for e in events] == [("skipped", True)]


def test_fault_without_a_victim_is_skipped(tmp_path, monkeypatch):
    def fault(world, rng):
        raise NotNow("nobody there")
        yield

    _, events = run(tmp_path, monkeypatch, fault)
    assert {e["phase"] for e in events} == {"skipped"}


def test_unknown_fault_is_refused(tmp_path):
    with pytest.raises(ValueError, match="meteor"):
        Nemesis(World(), None, 1, ["meteor"], 1.0)
