"""Runs drivers with faults and judges what they leave.

A crash is a state of what outlives the driver: broker, log, checkpoint. From a state the next
driver is started, with a fault of its own at each of its requests in turn, and so on. States that
were met before are not gone through again.
"""

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count

from deltalake.exceptions import CommitFailedError

from spark_eos.errors import FencedError, RetriableError, SparkEosError
from tests.simulation.driver import ConcurrentUpdateError, Driver, World
from tests.simulation.faults import CrashError, Fault, KilledError, Way, time_out
from tests.simulation.oracle import (
    check_decided,
    check_exactly_once,
    check_no_wrong_row,
    check_nothing_open,
)

# How a query may fail here, or be ended from outside. Anything else is a mistake: so is an error
# that says that the log is broken, or that a person has to decide.
EXPECTED = (
    RetriableError,
    FencedError,
    ConcurrentUpdateError,
    OSError,
    CommitFailedError,
)
ENDED = (*EXPECTED, CrashError, KilledError)


def run(driver):
    """Run to the end or to a failure, which is returned. What is visible then must be right."""
    failure = None
    try:
        driver.run()
    except ENDED as error:
        failure = error
    check_now(driver.world)
    return failure


def check_now(world):
    """What must hold at any time, whatever was interrupted."""
    finished = sum(1 for name in world.files if name.startswith("commits/"))
    check_no_wrong_row(world.broker, world.workload, finished)
    check_decided(world.broker, world.workload, world.storage)


def finish(world, start=Driver):
    """Start the query once more, without a fault: this must be enough."""
    driver = start(world)
    driver.run()
    check_exactly_once(world.broker, world.workload)
    return driver


def check_failed_well(*frozen):
    """Drivers that came to their end, with an error that a driver may have here or with none."""
    for driver in frozen:
        assert driver.error is None or isinstance(driver.error, EXPECTED), repr(driver.error)


def requests(workload, start=Driver):
    """The numbers of all requests of a run without a fault."""
    return range(1, len(finish(World(workload), start).schedule.calls) + 1)


def check_aborted(driver, failure):
    """Where the batch had begun and the driver lived to call `abort`, nothing is left open."""
    step = driver.schedule.fired[-1]
    aborts = (step.way in (Way.REFUSED, Way.UNKNOWN) and step.role != "planner") or (
        step.way is Way.KILLED and step.role == "task"
    )
    if failure is not None and aborts:
        check_nothing_open(driver.world.broker)


def explore(world, ways, depths, **others):
    """Go through all of it; the failures are told at the end, each with its story."""
    found = Exploration(ways, depths, **others)
    found.go(world)
    assert not found.failures, f"{len(found.failures)} of {found.points}:\n" + "\n".join(
        found.failures[:5]
    )
    return found


@dataclass
class Exploration:
    """Every request in every way to fail, `len(depths)` faults deep.

    A depth is the number of batches whose requests get a fault: recovery is in the first.
    """

    ways: Sequence[Way]
    depths: Sequence[int]
    down: Sequence[Way | None] = (None,)  # what times out while no driver runs
    start: type[Driver] = Driver
    points: int = 0
    failures: list[str] = field(default_factory=list)
    _seen: set = field(default_factory=set)

    def go(self, world, level=0, story=()):
        for way in self.ways:
            for number in count(1):
                driver = self.start(copy.deepcopy(world), Fault(number, way))
                if not self._point(driver, level, story):
                    break

    def _point(self, driver, level, story):
        """One fault; False when there was no such request."""
        try:
            failure = run(driver)
            schedule = driver.schedule
            if not schedule.fired or self._is_behind(schedule, level):
                return False
            self.points += 1
            check_aborted(driver, failure)
            self._go_on(driver.world, level, (*story, *map(str, schedule.fired)))
        except (AssertionError, SparkEosError, *ENDED) as error:
            steps = "; then ".join((*story, *map(str, driver.schedule.fired)))
            self.failures.append(f"{steps}: {type(error).__name__}: {error}")
        return True

    def _is_behind(self, schedule, level):
        done = schedule.calls[: schedule.fired[0].number - 1]
        return sum(name.startswith("file commits/") for name in done) >= self.depths[level]

    def _go_on(self, world, level, story):
        for way in self.down:
            later = copy.deepcopy(world)
            if way is not None:
                time_out(later.broker, way)
            mark = (fingerprint(later), level)
            if mark in self._seen:
                continue
            self._seen.add(mark)
            if level + 1 < len(self.depths):
                self.go(later, level + 1, (*story, f"while down: {way and way.name}"))
            finish(later, self.start)


def fingerprint(world):
    """A state, without times."""
    broker = world.broker
    return hash(
        (
            tuple((place, tuple(entries)) for place, entries in broker.log.items()),
            tuple(
                (t.identity, t.state, tuple(t.places), repr(t.offsets))
                for t in broker.transactions.values()
            ),
            repr(sorted(broker.groups.items())),
            tuple(sorted(world.files)),
            world.storage.synced,
            tuple(
                (r.identity, r.state, r.batch_id, r.partitions)
                for commit in world.storage.commits
                for r in commit.records
            ),
        )
    )
