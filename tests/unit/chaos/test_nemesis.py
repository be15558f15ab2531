"""The nemesis: the same seed, the same faults; what it breaks it heals; what it cannot it says."""

import itertools
import time

import pytest

from chaos import nemesis
from chaos.cluster_faults import clock_jump
from chaos.deck import Draw
from chaos.faults import AROUND, FAULTS, INSIDE
from chaos.history import History, load
from chaos.nemesis import Nemesis, schedule
from chaos.workload import NotNow


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
    return [
        ([(name, draw.turn, draw.random()) for name, draw in given], wait, calm)
        for given, wait, calm in chosen
    ]


def test_same_seed_same_faults():
    assert choices(7) == choices(7)
    assert choices(7) != choices(8)


def test_every_kind_comes_once_before_one_comes_again():
    names = [given[-1][0] for given, _, _ in choices(3, 2 * len(FAULTS))]
    assert sorted(names[: len(FAULTS)]) == sorted(FAULTS)
    assert sorted(names[len(FAULTS) :]) == sorted(FAULTS)


def test_every_fault_counts_its_own_turns():
    turns = {}
    for given, _, _ in choices(3, 4 * len(FAULTS)):
        for name, turn, _ in given:
            turns.setdefault(name, []).append(turn)
    assert all(found == list(range(len(found))) for found in turns.values())


def test_now_and_then_a_process_is_hit_while_the_network_is_bad():
    given = [given for given, _, _ in choices(3, 10 * len(FAULTS))]
    pairs = [[name for name, *_ in faults] for faults in given if len(faults) > 1]
    hit = sum(faults[-1][0] in INSIDE for faults in given)
    assert 0.1 * hit < len(pairs) < 0.4 * hit
    assert {around for around, _ in pairs} == set(AROUND)
    assert {inside for _, inside in pairs} <= set(INSIDE)


def run(tmp_path, monkeypatch, fault, seconds=0.2, faults=None):
    monkeypatch.setattr(nemesis, "FAULTS", {"some": fault})
    monkeypatch.setattr(nemesis, "CALM_S", (0.0, 0.01))
    monkeypatch.setattr(nemesis, "AFTER_SKIP_S", 0.05)
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


def test_end_tells_to_whom_it_happened_where_the_start_could_not(tmp_path, monkeypatch):
    def fault(world, rng):
        yield "perhaps two", 0.0
        yield "one"

    _, events = run(tmp_path, monkeypatch, fault, faults=1)
    assert [e["target"] for e in events] == ["perhaps two", "one"]


def test_one_fault_lasts_while_another_is_given(tmp_path, monkeypatch):
    def fault(name, seconds):
        def give(world, rng):
            yield name, seconds
            world.told.append(f"{name} broken")
            yield
            world.told.append(f"{name} healed")

        return give

    faults = {"around": fault("around", 0.0), "inside": fault("inside", 0.1)}
    monkeypatch.setattr(nemesis, "FAULTS", faults)
    monkeypatch.setattr(nemesis, "AROUND", ("around",))
    monkeypatch.setattr(nemesis, "INSIDE", ("inside",))
    monkeypatch.setattr(nemesis, "OVERLAP", 1.0)
    monkeypatch.setattr(nemesis, "schedule", inside_first)
    history, world = History(tmp_path / "history.jsonl"), World()
    Nemesis(world, history, 1, faults, 1.0).run_until(time.monotonic(), faults=1)
    history.close()
    assert world.told == ["around broken", "inside broken", "inside healed", "around healed"]
    events = [e for e in load(history.path) if e["kind"] == "fault"]
    assert [(e["phase"], e["id"]) for e in events] == [
        *(("start", 1), ("start", 2)),
        *(("end", 2), ("end", 1)),
    ]
    assert events[-1]["at"] - events[0]["at"] >= 0.1


def inside_first(seed, names):
    """From the first choice on that is not the one around alone."""
    return itertools.dropwhile(lambda choice: len(choice[0]) == 1, schedule(seed, names))


def test_every_fault_that_it_cannot_give_is_told_with_the_reason(tmp_path, monkeypatch):
    _, events = run(tmp_path, monkeypatch, clock_jump)
    assert {(e["phase"], "libfaketime" in e["detail"]) for e in events} == {("skipped", True)}
    assert len(events) > 1


def test_fault_without_a_victim_is_skipped(tmp_path, monkeypatch):
    def fault(world, rng):
        raise NotNow("nobody there")
        yield

    _, events = run(tmp_path, monkeypatch, fault)
    assert {e["phase"] for e in events} == {"skipped"}
    assert {e["detail"] for e in events} == {"nobody there"}


def test_fault_that_nobody_was_there_for_comes_once_more_behind_the_next(tmp_path, monkeypatch):
    """With the draw that it had; no third time, or what never works would fill a run."""
    drawn = []

    def rare(world, rng):
        drawn.append((rng.turn, rng.random()))
        raise NotNow("nobody there")
        yield

    def usual(world, rng):
        yield "somebody", 0.0
        drawn.append("given")
        yield

    run_with(tmp_path, monkeypatch, {"rare": rare, "usual": usual}, ("rare", "usual", "usual"))
    assert drawn == [drawn[0], "given", drawn[0], "given"]


def test_both_come_again_where_the_one_around_could_not_be_given(tmp_path, monkeypatch):
    told = []

    def fault(name, absent=0):
        def give(world, rng):
            told.append(name)
            if told.count(name) <= absent:
                raise NotNow("nobody there")
            yield "somebody", 0.0
            yield

        return give

    faults = {"around": fault("around", 1), "inside": fault("inside"), "usual": fault("usual")}
    run_with(tmp_path, monkeypatch, faults, (("around", "inside"), "usual"))
    assert told == ["around", "usual", "around", "inside"]


def run_with(tmp_path, monkeypatch, faults, order):
    """Give faults in an order; a pair is one around another."""

    def chosen(seed, names):
        for turn, one in enumerate(order):
            given = (one,) if isinstance(one, str) else one
            yield [(name, Draw(seed, name, turn)) for name in given], False, 0.0

    monkeypatch.setattr(nemesis, "FAULTS", faults)
    monkeypatch.setattr(nemesis, "AFTER_SKIP_S", 0.0)
    monkeypatch.setattr(nemesis, "schedule", chosen)
    history = History(tmp_path / "history.jsonl")
    Nemesis(World(), history, 1, list(faults), 1.0).run_until(time.monotonic() + 60)
    history.close()


def test_unknown_fault_is_refused(tmp_path):
    with pytest.raises(ValueError, match="meteor"):
        Nemesis(World(), None, 1, ["meteor"], 1.0)
