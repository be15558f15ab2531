"""Faults of people: which state a driver is started on, and that the query gets its own back."""

from types import SimpleNamespace

import pytest

from chaos import people_faults, wait
from chaos.deck import Draw
from chaos.faults import FAULTS
from chaos.people_faults import COPIED, RESTORED, VERY_MOMENT, State
from chaos.workload import NotNow


class Driver:
    """Ends as soon as somebody looks, unless it is the query's."""

    def __init__(self, world, number, *, runs=False):
        self._world = world
        self.number = number
        self.runs = runs

    def signal(self, _, *, workers):
        assert workers
        self.runs = False

    def stop(self):
        self.runs = False


class World:
    """A query whose state is a number in two files. It completes a batch whenever it is let go."""

    def __init__(self, folder):
        self.folder = folder
        self.disk = SimpleNamespace(log=folder / "log" / "transaction_state")
        self.query = State(folder / "checkpoint", self.disk.log)
        self.told = []
        self.first = Driver(self, 1, runs=True)
        self.supervisor = SimpleNamespace(replace=self.replace, hold_down=self.hold_down)
        self.batch = 0
        self.complete(self.query, 3)

    def complete(self, state, batch):
        for folder in (state.checkpoint / "commits", state.log):
            folder.mkdir(parents=True, exist_ok=True)
            (folder / str(batch)).touch()
        self.batch = batch

    def driver(self):
        if not self.first.runs:
            raise NotNow("driver 1 has just ended")
        return self.first

    def hold_at(self, driver, step):
        self.told.append(f"hold {driver.number} at {step}")

    def let_go(self, driver, _):
        self.told.append(f"let go {driver.number}")
        if not any("start" in words for words in self.told):
            for _ in range(3):
                self.complete(self.query, self.batch + 1)
        else:
            driver.runs = False

    def hold_down(self, seconds):
        self.told.append("hold down" if seconds else "free")

    def replace(self, checkpoint=None, log=None):
        state = State(checkpoint or self.query.checkpoint, log or self.query.log)
        assert sorted(p.name for p in state.log.iterdir()) == sorted(
            p.name for p in (state.checkpoint / "commits").iterdir()
        )
        self.told.append(f"start at {state.last_commit}")
        if checkpoint is not None and self.batch == state.last_commit:  # it goes on
            self.complete(state, self.batch + 1)
        return Driver(self, 2)


@pytest.fixture
def world(tmp_path, monkeypatch):
    monkeypatch.setattr(wait, "POLL_S", 0.001)
    monkeypatch.setattr(people_faults, "START_S", 0.5)
    return World(tmp_path)


def give(world, name, turn=0):
    fault = FAULTS[name](world, Draw(1, name, turn))
    target, _ = next(fault)
    target = next(fault) or target
    assert list(fault) == []
    return target


def test_backup_is_tried_and_the_newest_state_is_put_back(world):
    assert give(world, RESTORED).startswith("driver 2, ")
    assert world.told == [
        *("hold 1 at planned", "let go 1", "hold down", "start at 3", "free"),
    ]
    assert world.query.last_commit == 6
    assert sorted(p.name for p in world.folder.rglob("commits")) == ["commits"]


def test_copy_is_older_or_of_the_very_moment_and_each_comes_once(world):
    targets = []
    for turn in range(1 + len(VERY_MOMENT)):
        world.told.clear()
        world.first.runs = True
        before = world.batch
        targets.append(give(world, COPIED, turn))
        older = targets[-1].startswith("driver 2, from a copy that is older")
        assert f"start at {before}" in world.told
        # An older copy changes nothing; what a copy of that moment wrote takes the place.
        assert world.query.last_commit == before + (3 if older else 1)
        assert not list(world.folder.glob("copy/checkpoint"))
    named = sorted(target for target in targets if target.startswith("driver 1 at "))
    assert named == sorted(f"driver 1 at '{s}', beside a copy of that moment" for s in VERY_MOMENT)


def test_query_that_completes_nothing_has_no_older_backup(world, monkeypatch):
    monkeypatch.setattr(world, "let_go", lambda *_: None)
    with pytest.raises(NotNow, match="completed no batch"):
        give(world, RESTORED)
