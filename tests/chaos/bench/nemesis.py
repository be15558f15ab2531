"""Chooses faults by a seed, gives one after the other, and heals what it broke.

The choice is repeatable, the moments are not: processes run at their own pace. Every kind of fault
comes once, in a shuffled order, before one comes again. Mostly the next one waits until a batch has
completed, so that each recovery can be timed; now and then it does not, and hits a recovery.
"""

import random
import time
from contextlib import suppress

from tests.chaos.bench.faults import FAULTS
from tests.chaos.bench.workload import NotNow

PRESS_ON = 0.2
CALM_S = (0.2, 3.0)
POLL_S = 0.05


def schedule(seed, names):
    """An endless choice: (name, random numbers for its details, wait for recovery?, calm)."""
    rng = random.Random(seed)
    while True:
        for name in rng.sample(sorted(names), len(names)):
            details = random.Random(rng.getrandbits(64))
            yield name, details, rng.random() >= PRESS_ON, rng.uniform(*CALM_S)


class Nemesis:
    """Gives faults to a world until a time is over."""

    def __init__(self, world, history, seed, names, recovery_s):
        unknown = set(names) - set(FAULTS)
        if unknown:
            raise ValueError(f"unknown {sorted(unknown)}: there are {sorted(FAULTS)}")
        self._world = world
        self._history = history
        self._schedule = schedule(seed, names)
        self._recovery_s = recovery_s
        self._given = 0

    def run_until(self, deadline, faults=None):
        """Give faults until the deadline, or so many; wait until the last is recovered from."""
        skipped = set()
        for name, rng, wait, calm in self._schedule:
            if self._given == faults or (faults is None and time.monotonic() > deadline):
                break
            over = self._give(name, rng, skipped)
            if over is not None:
                if wait:
                    self._await_recovery(over)
                time.sleep(calm)
        self._await_recovery(time.monotonic())

    def _give(self, name, rng, skipped):
        """Give one fault; returns when it was over, or None where it could not be given."""
        fault = FAULTS[name](self._world, rng)
        try:
            target, seconds = next(fault)
        except NotNow as why:
            if name not in skipped:
                self._history.add(
                    "fault", phase="skipped", id=0, name=name, target="", detail=str(why)
                )
            skipped.add(name)
            time.sleep(POLL_S)  # a schedule of nothing but these must not spin
            return None
        self._given += 1
        number = self._given
        self._history.add(
            "fault", phase="start", id=number, name=name, target=target, detail=f"{seconds:.1f} s"
        )
        try:
            next(fault)
            time.sleep(seconds)
        finally:
            with suppress(StopIteration):
                next(fault)
            over = self._history.add("fault", phase="end", id=number, name=name, target=target)
        return over

    def _await_recovery(self, over):
        """Until a batch completes, or longer than it may take."""
        deadline = time.monotonic() + self._recovery_s + 5
        while self._world.last_completed_at <= over and time.monotonic() < deadline:
            time.sleep(POLL_S)
