"""Faults that hold a process at a step: whom they hit, what they say, and that they let it go."""

import signal
from types import SimpleNamespace

import pytest

from chaos import process_faults, task_faults
from chaos.deck import Draw
from chaos.faults import FAULTS
from chaos.process_faults import DRIVER_STEPS, SURVEYED, TASK_STEPS
from chaos.workload import NotNow

IDLE, HELD, EXECUTOR = 10, 11, 20


class Driver:
    runs = True

    def __init__(self, world, number):
        self._world = world
        self.number = number

    def workers(self):
        return [IDLE]

    def executors(self):
        return [EXECUTOR] if self._world.has_executors else []

    def kill(self):
        self._world.told.append(f"kill driver {self.number}")
        self._world.supervisor.driver = Driver(self._world, self.number + 1)


class World:
    """Writes down what is done to its processes."""

    def __init__(self):
        self.told = []
        self.has_executors = True
        self.tries = {}  # step -> how often nobody comes there
        self.supervisor = SimpleNamespace(driver=Driver(self, 1))

    def driver(self):
        return self.supervisor.driver

    def hold_at(self, driver, step):
        self.tries[step] = self.tries.get(step, 0) - 1
        if self.tries[step] >= 0:
            raise NotNow(f"no process of driver {driver.number} came to '{step}'")
        self.told.append(f"hold driver {driver.number} at {step}")
        return HELD

    def let_go(self, driver, step):
        self.told.append(f"let go driver {driver.number} at {step}")


@pytest.fixture
def world(monkeypatch):
    found = World()

    def signal_to(pid, number):
        found.told.append(f"{signal.Signals(number).name} {pid}")

    monkeypatch.setattr(task_faults, "signal_to", signal_to)
    monkeypatch.setattr(process_faults, "signal_to", signal_to)
    monkeypatch.setattr(task_faults, "descendants", lambda _: {(HELD, "1")})
    return found


def give(world, name, turn):
    """All three steps; the target as it was at the end."""
    fault = FAULTS[name](world, Draw(1, name, turn))
    target, _ = next(fault)
    target = next(fault) or target
    assert list(fault) == []
    return target


VICTIMS = [
    *(("worker-kill", "worker", IDLE, HELD), ("worker-pause", "worker", IDLE, HELD)),
    *(("executor-kill", "executor", EXECUTOR, EXECUTOR),),
    *(("executor-pause", "executor", EXECUTOR, EXECUTOR),),
]


@pytest.mark.parametrize(("name", "kind", "idle", "held"), VICTIMS)
def test_of_two_one_is_held_at_a_step_and_the_steps_come_in_turn(world, name, kind, idle, held):
    targets = [give(world, name, turn) for turn in range(2 * len(TASK_STEPS))]
    for two in zip(targets[::2], targets[1::2], strict=True):
        assert sum(" at " in target for target in two) == 1
        assert f"{kind} {idle}" in two
    at = [target for target in targets if " at " in target]
    assert sorted(at) == sorted(f"{kind} {held} at '{step}'" for step in TASK_STEPS)


@pytest.mark.parametrize(("name", "kind", "idle", "held"), VICTIMS)
def test_held_task_is_hit_and_then_let_go(world, name, kind, idle, held):
    for turn in (0, 1):
        world.told.clear()
        if " at " in give(world, name, turn):
            break
    hold, hit, let_go, *after = world.told
    first = "SIGKILL" if name.endswith("kill") else "SIGSTOP"
    assert (hold.split()[0], hit, let_go.split()[:2]) == ("hold", f"{first} {held}", ["let", "go"])
    assert after == ([] if first == "SIGKILL" else [f"SIGCONT {held}"])


def test_task_without_an_executor_is_let_go(world):
    world.has_executors = False
    told = []
    for turn in (0, 1):
        with pytest.raises(NotNow) as why:
            give(world, "executor-kill", turn)
        told.append(str(why.value))
    assert f"there is no executor above worker {HELD}" in told
    assert [line.split()[0] for line in world.told] == ["hold", "let"]


def test_driver_dies_at_every_step_before_it_dies_again_at_one(world):
    steps = [*DRIVER_STEPS, SURVEYED]
    targets = [give(world, "driver-kill-at", turn) for turn in range(len(steps))]
    for step in steps:
        assert sum(f"at '{step}'" in target for target in targets) == 1 + (step == "decided")
    assert sum("goes on" in target for target in targets) == len(steps) / 2


def surveyed_turn():
    steps = (*DRIVER_STEPS, SURVEYED)
    return next(
        turn for turn in range(6) if Draw(1, "driver-kill-at", turn).deal(steps) == SURVEYED
    )


def test_driver_that_recovers_is_killed_behind_one_that_has_decided(world):
    target = give(world, "driver-kill-at", surveyed_turn())
    assert target.startswith("driver 1 at 'decided', driver 2 at 'surveyed'")
    assert world.told[:5] == [
        *("hold driver 1 at decided", "kill driver 1", f"SIGKILL {HELD}"),
        *("hold driver 2 at surveyed", "kill driver 2"),
    ]
    assert world.told[5] in (f"SIGKILL {HELD}", "let go driver 2 at surveyed")


def test_driver_that_starts_slowly_is_waited_for(world):
    world.tries = {SURVEYED: 2}
    assert "driver 2 at 'surveyed'" in give(world, "driver-kill-at", surveyed_turn())


def test_driver_that_does_not_survey_lives_and_is_told_of(world, monkeypatch):
    monkeypatch.setattr(process_faults, "START_S", 0.3)
    world.tries = {SURVEYED: 1000}
    target = give(world, "driver-kill-at", surveyed_turn())
    assert target == "driver 1 at 'decided'; no process of driver 2 came to 'surveyed'"
    assert world.driver().number == 2


def test_driver_that_ends_before_it_has_surveyed_is_told_of(world, monkeypatch):
    monkeypatch.setattr(Driver, "runs", False)
    world.tries = {SURVEYED: 1000}
    target = give(world, "driver-kill-at", surveyed_turn())
    assert target == "driver 1 at 'decided'; no process of driver 2 came to 'surveyed'"


def test_driver_without_a_successor_is_told_of(world, monkeypatch):
    monkeypatch.setattr(process_faults, "START_S", 0.1)
    monkeypatch.setattr(Driver, "kill", lambda _: None)
    target = give(world, "driver-kill-at", surveyed_turn())
    assert target == "driver 1 at 'decided'; no driver came after 1"
