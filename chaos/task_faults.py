"""Faults of executors and Python workers.

Most of the time they wait for the next batch, and nobody would miss them. So every second fault
holds a task at a step of its write, and hits the process that stands there or its executor.
"""

import signal
from dataclasses import dataclass
from typing import Any

from chaos.process import descendants
from chaos.process_faults import TASK_STEPS, one_of, signal_to
from chaos.workload import NotNow

EXECUTOR, WORKER = "executor", "worker"


@dataclass(frozen=True, slots=True)
class Victim:
    """A process, and the step at which its task is held (None: it is at anything, or idle)."""

    kind: str
    pid: int
    world: Any
    driver: Any
    step: str | None

    def __str__(self):
        return f"{self.kind} {self.pid}{f' at {self.step!r}' if self.step else ''}"

    def hit(self, number):
        """The task goes on behind it, where it still can."""
        signal_to(self.pid, number)
        if self.step is not None:
            self.world.let_go(self.driver, self.step)


def any_of(world, rng, kind):
    """One that runs, whatever it does."""
    driver = world.driver()
    found = driver.executors() if kind == EXECUTOR else driver.workers()
    return Victim(kind, one_of(rng, found, kind), world, driver, None)


def held_at(world, kind, step):
    """One whose task stands at a step."""
    driver = world.driver()
    worker = world.hold_at(driver, step)
    pid = worker if kind == WORKER else _executor_above(driver, worker)
    if pid is None:
        world.let_go(driver, step)
        raise NotNow(f"there is no executor above worker {worker}")
    return Victim(kind, pid, world, driver, step)


def _executor_above(driver, worker):
    for executor in driver.executors():
        if worker in {pid for pid, _ in descendants(executor)}:
            return executor
    return None


def _victim(world, rng, kind):
    """Of two in a row, one at a step; and the steps in turn."""
    if rng.deal((True, False)):
        return held_at(world, kind, rng.deal(TASK_STEPS, rng.turn // 2))
    return any_of(world, rng, kind)


def _kill(victim):
    yield str(victim), 0.0
    victim.hit(signal.SIGKILL)
    yield


def _pause(victim, seconds):
    yield str(victim), seconds
    victim.hit(signal.SIGSTOP)
    yield
    signal_to(victim.pid, signal.SIGCONT)


def executor_kill(world, rng):
    """SIGKILL to an executor, every second time while a task of it stands at a step."""
    yield from _kill(_victim(world, rng, EXECUTOR))


def executor_pause(world, rng):
    """SIGSTOP to such a one for 3 or 14 s; the driver gives up one that is frozen for 10."""
    seconds = rng.deal((3.0, 14.0))
    yield from _pause(_victim(world, rng, EXECUTOR), seconds)


def worker_kill(world, rng):
    """SIGKILL to a Python worker, every second time while its task stands at a step."""
    yield from _kill(_victim(world, rng, WORKER))


def worker_kill_at(world, rng):
    """SIGKILL to a task's worker at a step of its write."""
    yield from _kill(held_at(world, WORKER, rng.deal(TASK_STEPS)))


def worker_pause(world, rng):
    """SIGSTOP to such a one for 2 to 12 s, then SIGCONT."""
    seconds = rng.uniform(2, 12)
    yield from _pause(_victim(world, rng, WORKER), seconds)
