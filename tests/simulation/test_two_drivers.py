"""An old driver frozen at each of its requests, while a new one takes over; then the old one wakes.

Whoever loses must fail, and never may a wrong row be visible.
"""

import copy
from dataclasses import dataclass
from itertools import product

import pytest

from spark_eos.errors import SparkEosError
from tests.simulation.driver import GROUP, Driver, World, workload
from tests.simulation.explore import ENDED, check_failed_well, check_now, finish, requests
from tests.simulation.faults import CrashError, Fault, Way, time_out
from tests.simulation.freeze import start, woken_after_a_death
from tests.simulation.oracle import check_exactly_once, check_nothing_open

pytestmark = pytest.mark.usefixtures("simulated")

WORKLOAD = workload((1, 1), (1, 0, 1), group=GROUP)
SMALL = workload((1, 1), (1,), group=GROUP)
ONE_BATCH = workload((1, 1), group=GROUP)


def overtaken(frozen_at):
    """The old driver was frozen while the new one did everything, and has come to its end."""
    world = World(WORKLOAD)
    old = start(world)
    old.run_until(frozen_at)
    finish(world)
    old.run_until(None)
    check_failed_well(old)
    return world, old


@dataclass
class Overlap:
    """How an overlap of two drivers ended. `wrong` is what was wrong with it on the way."""

    world: World
    failed: list[bool]
    wrong: AssertionError | None = None


def overlap(frozen_at, new_at):
    """The old one goes on to its end while the new one is frozen, then the new one does."""
    world = World(SMALL)
    old, new = start(world), start(world)
    wrong = None
    old.run_until(frozen_at)
    new.run_until(new_at)
    for driver in (old, new):
        driver.run_until(None)
        try:
            check_now(world)
            check_failed_well(driver)
        except AssertionError as error:
            wrong = wrong or error
    return Overlap(world, [driver.error is not None for driver in (old, new)], wrong)


@pytest.fixture(scope="module")
def overlaps(simulated):
    """The world after each overlap, by the requests at which the two were frozen."""
    numbers = requests(SMALL)
    return {places: overlap(*places) for places in product(numbers, numbers)}


def failures(judge, cases):
    """What `judge` finds wrong, and where the drivers were frozen."""
    found = []
    for case in cases:
        try:
            judge(case)
        except (AssertionError, SparkEosError, *ENDED) as error:
            found.append(f"frozen at requests {case}: {type(error).__name__}: {error}")
    return found


def test_old_driver_wakes_when_the_new_one_is_done():
    def judge(frozen_at):
        world, old = overtaken(frozen_at)
        assert old.error is not None, "the old driver did not fail"
        time_out(world.broker, Way.ALL_TIMED_OUT)
        check_exactly_once(world.broker, world.workload)

    assert failures(judge, requests(WORKLOAD)) == []


@pytest.mark.parametrize("way", [Way.CRASHED, Way.LOST])
def test_old_driver_wakes_when_the_new_one_has_died(way):
    """It may have decided the same batch, and the third one has nothing but the log to tell."""

    def judge(places):
        world, old = woken_after_a_death(ONE_BATCH, *places, way)
        check_failed_well(old)
        time_out(world.broker, Way.ALL_TIMED_OUT)
        finish(world)

    numbers = requests(ONE_BATCH)
    assert failures(judge, product(numbers, numbers)) == []


def test_old_driver_wakes_while_the_new_one_runs(overlaps):
    """Both may fail. What they leave open times out, and the next start goes on from there."""

    def judge(places):
        found = overlaps[places]
        if found.wrong is not None:
            raise found.wrong
        _, new_at = places
        assert any(found.failed) or new_at == 1, "both believe that they ran the query"
        world = copy.deepcopy(found.world)
        time_out(world.broker, Way.ALL_TIMED_OUT)
        finish(world)

    assert failures(judge, overlaps) == []


def test_taking_turns_request_by_request():
    """Both go on in step, from each lead that one can have over the other."""

    def judge(lead):
        world = World(SMALL)
        drivers = [start(world), start(world)]
        drivers[0].run_until(lead)
        turn = 1
        while not all(driver.ended for driver in drivers):
            drivers[turn].run_until(drivers[turn].requests + 1)
            check_now(world)
            turn = 1 - turn
        check_failed_well(*drivers)
        time_out(world.broker, Way.ALL_TIMED_OUT)
        finish(world)

    assert failures(judge, requests(SMALL)) == []


@pytest.mark.parametrize("frozen_at", ["Produce b0p1r0", "Delta open"])
def test_overtaken_driver_does_not_hit_the_one_that_goes_on(frozen_at):
    """The new one has decided batch 1 when the old one fails in batch 0 and calls `abort`."""
    calls = finish(World(WORKLOAD)).schedule.calls
    first_batch = calls[: calls.index("file commits/0")]
    in_commit = max(n for n, name in enumerate(first_batch, 1) if name == frozen_at)
    again = overtaking_calls(in_commit)
    decided = next(n for n, name in enumerate(again, 1) if "1 PrepareCommit" in name)

    def judge(new_at):
        check_only_the_old_one_fails(in_commit, new_at)

    assert failures(judge, range(decided + 1, len(again) + 1)) == []


def test_overtaken_driver_does_not_open_the_offsets_of_the_one_that_goes_on():
    """The new one has prepared the offsets of batch 0 when the old one comes to commit it."""
    calls = finish(World(WORKLOAD)).schedule.calls
    first_batch = calls[: calls.index("file commits/0")]
    in_commit = max(n for n, name in enumerate(first_batch, 1) if name == "Delta open")
    again = overtaking_calls(in_commit)
    prepared = 1 + again.index("TxnOffsetCommit")
    decided = next(n for n, name in enumerate(again, 1) if "0 PrepareCommit" in name)

    def judge(new_at):
        check_only_the_old_one_fails(in_commit, new_at)

    assert failures(judge, range(prepared + 1, decided + 1)) == []


def check_only_the_old_one_fails(frozen_at, new_at):
    """It wakes and comes to its end while the new one is frozen, which then goes on to its own."""
    world = World(WORKLOAD)
    old, new = start(world), start(world)
    old.run_until(frozen_at)
    new.run_until(new_at)
    old.run_until(None)
    new.run_until(None)
    check_failed_well(old)
    assert old.error is not None
    assert new.error is None, f"the new driver failed: {new.error}"
    check_exactly_once(world.broker, world.workload)


def overtaking_calls(frozen_at):
    """The requests of a driver that takes over from one that is frozen there."""
    world = World(WORKLOAD)
    old = start(world)
    old.run_until(frozen_at)
    calls = finish(world).schedule.calls
    old.run_until(None)
    return calls


def test_overtaken_driver_leaves_nothing_open():
    def judge(frozen_at):
        world, _ = overtaken(frozen_at)
        check_nothing_open(world.broker)

    assert failures(judge, requests(WORKLOAD)) == []


def test_next_start_need_not_wait_for_a_time_out(overlaps):
    def judge(places):
        Driver(copy.deepcopy(overlaps[places].world)).run()

    assert failures(judge, overlaps) == []


def test_abort_of_a_driver_that_was_fenced_does_not_stop_the_one_that_fenced_it():
    """The new one has planned batch 0, and no task of it runs yet, when the old one fails."""
    in_commit = request("DescribeTransactions")
    again = overtaking_calls(in_commit)
    planned = next(n for n, name in enumerate(again, 1) if "Metadata" in name)
    check_only_the_old_one_fails(in_commit, planned)


def test_offsets_of_an_old_driver_do_not_hold_back_recovery():
    """It opened its offsets transaction when the decided one had timed out, and was killed."""
    world = World(WORKLOAD)
    old = start(world)
    old.run_until(request("InitProducerId offsets"))
    crashed = Driver(world, Fault(decided_at(world), Way.CRASHED))
    with pytest.raises(CrashError):
        crashed.run()
    time_out(world.broker, Way.ALL_TIMED_OUT)
    old.run_until(request("DescribeGroups"))
    assert world.broker.ongoing(), "the old driver has nothing open"
    Driver(world).run()
    check_exactly_once(world.broker, world.workload)


def request(name):
    """The number of the first request of this name."""
    return 1 + finish(World(WORKLOAD)).schedule.calls.index(name)


def decided_at(world):
    """The number of the request behind the decision of batch 0, of a driver that starts now."""
    calls = finish(copy.deepcopy(world)).schedule.calls
    return 2 + next(n for n, name in enumerate(calls, 1) if "0 PrepareCommit" in name)
