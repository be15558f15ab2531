"""Chooses faults by a seed, gives one after the other, and heals what it broke.

The choice is repeatable, the moments are not: processes run at their own pace. Every kind of fault
comes once, in a shuffled order, before one comes again. Mostly the next one waits until a batch has
completed, so that each recovery can be timed; now and then it does not, and hits a recovery. And
now and then a process is killed or frozen while the network is already bad.

A fault that nobody was there for comes once more, behind the next one that could be given: else a
kind that has one turn in half an hour is missing from it.
"""

import random
import time
from collections import Counter
from contextlib import closing, suppress

from chaos.deck import Draw
from chaos.faults import AROUND, FAULTS, INSIDE
from chaos.workload import NotNow

PRESS_ON = 0.2
OVERLAP = 0.25
CALM_S = (0.2, 3.0)
POLL_S = 0.05
# Soon enough a driver that has just ended has a successor.
AFTER_SKIP_S = 0.5


def schedule(seed, names):
    """An endless choice: (faults around each other, wait for recovery?, calm).

    A fault is its name and what it draws its details from. The first is around the second.
    """
    rng, turns = random.Random(seed), Counter()
    around = [name for name in AROUND if name in names]

    def turn_of(name):
        turns[name] += 1
        return name, Draw(seed, name, turns[name] - 1)

    while True:
        for name in rng.sample(sorted(names), len(names)):
            given = [turn_of(name)]
            if rng.random() < OVERLAP and name in INSIDE and around:
                _, draw = turn_of("overlap")
                given.insert(0, turn_of(draw.deal(around)))
            yield given, rng.random() >= PRESS_ON, rng.uniform(*CALM_S)


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
        owed = []
        for given, wait, calm in self._schedule:
            if self._given >= faults if faults is not None else time.monotonic() > deadline:
                break
            skipped = self._turn(given, wait, calm)
            if len(skipped) < len(given):
                for name, draw in owed:
                    self._turn([(name, draw.again())], wait, calm)
                owed = []
            owed += skipped
        self._await_recovery(time.monotonic())

    def _turn(self, given, wait, calm):
        """Give faults around each other, and let the query recover. Returns those not given."""
        skipped = []
        over = self._give(skipped, *given)
        if over is not None:
            if wait:
                self._await_recovery(over)
            time.sleep(calm)
        return skipped

    def _give(self, skipped, first, *inside):
        """Give one fault, and others while it lasts.

        Returns when it was over, or None where it could not be given.
        """
        name, draw = first
        with closing(FAULTS[name](self._world, draw)) as fault:
            try:
                target, seconds = next(fault)
            except NotNow as why:
                self._history.add(
                    "fault", phase="skipped", id=0, name=name, target="", detail=str(why)
                )
                skipped += (first, *inside)
                time.sleep(AFTER_SKIP_S)
                return None
            self._given += 1
            event = {"id": self._given, "name": name}
            detail = f"{seconds:.1f} s"
            self._history.add("fault", phase="start", **event, target=target, detail=detail)
            try:
                # What it was in the end, where it was not known before.
                target = next(fault) or target
                self._give_inside(skipped, time.monotonic() + seconds, inside)
            finally:
                with suppress(StopIteration):
                    next(fault)
                over = self._history.add("fault", phase="end", **event, target=target)
        return over

    def _give_inside(self, skipped, end, inside):
        if inside:
            self._give(skipped, *inside)
        time.sleep(max(0.0, end - time.monotonic()))

    def _await_recovery(self, over):
        """Until a batch completes, or longer than it may take."""
        deadline = time.monotonic() + self._recovery_s + 5
        while self._world.last_completed_at <= over and time.monotonic() < deadline:
            time.sleep(POLL_S)
