"""Every request of a batch write fails once, in every way, and the same program run again mends it.

What holds for a micro-batch holds for a version of an application, without Spark's checkpoint to
tell what is complete.
"""

from collections import Counter
from contextlib import suppress
from itertools import count, product

import pytest

from spark_eos.errors import NonDeterministicReplayError
from tests.simulation.driver import Workload, World, workload
from tests.simulation.explore import (
    ENDED,
    check_failed_well,
    check_now,
    explore,
    finish,
    requests,
)
from tests.simulation.faults import TIME_OUTS, Fault, Way, time_out
from tests.simulation.freeze import start
from tests.simulation.job import Job
from tests.simulation.oracle import check_exactly_once, check_nothing_open, visible_values

pytestmark = pytest.mark.usefixtures("simulated")

ALL_VERSIONS = 9
CRASHES = (Way.CRASHED, Way.LOST, Way.POWER_CUT)
WORKLOADS = {
    "rows": workload((2, 1), (0, 1), (1, 0, 1)),
    "empty versions": workload((0, 0), (1, 0), (0,), (1, 1)),
    "tasks tried twice": workload((1, 1), (2, 0), task_attempts=2),
    "ends that arrive backwards": workload((1, 1, 1), (1,), backwards=True),
}
SMALL = workload((1, 1), (1,))
ROWS = (("a0", "a1"), ("b0",))


@pytest.fixture(params=WORKLOADS.values(), ids=WORKLOADS.keys())
def world(request):
    return World(request.param)


def test_without_a_fault_each_row_is_visible_once_however_often_it_is_run(world):
    finish(world, Job)
    written = {place: len(entries) for place, entries in world.broker.log.items()}
    for name in [name for name in world.files if name.startswith("commits/")]:
        del world.files[name]
    Job(world).write(len(world.workload.batches) - 1)
    check_exactly_once(world.broker, world.workload)
    assert {place: len(entries) for place, entries in world.broker.log.items()} == written


@pytest.mark.parametrize("way", Way)
def test_one_fault(world, way):
    found = explore(world, [way], [ALL_VERSIONS], start=Job)
    assert found.points >= len(requests(world.workload, Job))


@pytest.mark.parametrize("down", TIME_OUTS)
def test_crash_and_then_time_outs_while_nobody_runs(world, down):
    explore(world, CRASHES, [ALL_VERSIONS], down=[down], start=Job)


def test_two_crashes_each_with_time_outs():
    explore(World(SMALL), CRASHES, [ALL_VERSIONS, 1], down=[None, *TIME_OUTS], start=Job)


def test_write_whose_end_could_not_be_logged_has_not_failed():
    """Its rows are visible: an error would deny that, and who writes them another way doubles."""
    job = Job(World(SMALL))
    job.run()
    calls = enumerate(job.schedule.calls, 1)
    told = [n for n, name in calls if name.startswith("Delta commit") and "Complete" in name]
    assert len(told) == len(SMALL.batches)
    for number in told:
        world = World(SMALL)
        job = Job(world, Fault(number, Way.REFUSED))
        job.run()
        assert job.schedule.fired
        check_exactly_once(world.broker, SMALL)
        finish(world, Job)


@pytest.mark.parametrize("way", [w for w in Way if w is not Way.KILLED])
def test_version_that_comes_back_with_other_rows_is_whole_or_refused(way):
    replayed = (("x0",), ("y0", "y1"))
    whole = [Counter(value for rows in batch for value in rows) for batch in (ROWS, replayed)]
    torn = written = 0
    for number in count(1):
        world = World(Workload((ROWS,), replayed=replayed))
        first = Job(world, Fault(number, way))
        with suppress(*ENDED):
            first.run()
        if not first.schedule.fired:
            break
        is_known = "commits/0" in world.files
        with suppress(NonDeterministicReplayError):
            Job(world).run()
        seen, _ = visible_values(world.broker)
        if is_known:
            assert seen == whole[0], f"{first.schedule.fired[0]}: {seen}"
        elif "commits/0" in world.files:
            assert seen == whole[1], f"{first.schedule.fired[0]}: {seen}"
        else:
            assert Counter() < seen <= whole[0], f"{first.schedule.fired[0]}: {seen}"
            torn += seen != whole[0]
            written += seen == whole[0]
        check_nothing_open(world.broker)
    if way in (Way.FIRST_TIMED_OUT, Way.LAST_TIMED_OUT):
        assert torn, "no torn version was met"
    if way in (Way.CRASHED, Way.LOST, Way.UNKNOWN):
        assert written, "no version was met that is written and not known to be"


def test_versions_of_another_stream_under_the_same_name_are_refused():
    """A new checkpoint counts its batches from 0 again: they must not be taken for written."""
    world = World(SMALL)
    finish(world, Job)
    written = {place: len(entries) for place, entries in world.broker.log.items()}
    world.workload = Workload(((("x0", "x1"), ()), (("y0",),)))
    for version in (0, 1):
        with pytest.raises(NonDeterministicReplayError, match=f"version {version} of txnAppId"):
            Job(world).write(version)
    assert {place: len(entries) for place, entries in world.broker.log.items()} == written


def test_versions_that_come_back_in_other_partitions_write_nothing():
    """One instead of two, three instead of one; each row goes where it went before."""
    world = World(SMALL)
    finish(world, Job)
    written = {place: len(entries) for place, entries in world.broker.log.items()}
    (first, second), (only,) = SMALL.batches
    world.workload = Workload((((*first, *second),), ((), (), only)))
    for version in (0, 1):
        Job(world).write(version)
    assert {place: len(entries) for place, entries in world.broker.log.items()} == written


def test_two_runs_at_the_same_time():
    """One is frozen at each of its requests while the other one runs up to each of its own."""
    wrong = []
    numbers = requests(SMALL, Job)
    for places in product(numbers, numbers):
        world = World(SMALL)
        jobs = [start(world, Job), start(world, Job)]
        try:
            for job, place in zip(jobs, places, strict=True):
                job.run_until(place)
                check_now(world)
            for job in jobs:
                job.run_until(None)
                check_now(world)
            check_failed_well(*jobs)
            time_out(world.broker, Way.ALL_TIMED_OUT)
            finish(world, Job)
        except (AssertionError, *ENDED) as error:
            wrong.append(f"frozen at requests {places}: {type(error).__name__}: {error}")
    assert not wrong, f"{len(wrong)}:\n" + "\n".join(wrong[:5])


@pytest.mark.parametrize("frozen_at", ["Produce b0p0r0", "Produce b0p1r0", "DescribeTransactions"])
def test_overtaken_run_does_not_hit_the_one_that_goes_on(frozen_at):
    """The new one has written version 0 when the old one fails in it and calls `abort`."""
    place = finish(World(SMALL), Job).schedule.calls.index(frozen_at) + 1
    world, old = frozen(place)
    calls = finish(world, Job).schedule.calls
    old.run_until(None)
    behind = calls.index("file commits/0") + 2
    for new_at in range(behind, len(calls) + 1):
        world, old = frozen(place)
        new = start(world, Job)
        new.run_until(new_at)
        old.run_until(None)
        new.run_until(None)
        check_failed_well(old)
        assert old.error is not None
        assert new.error is None, f"the new one failed behind {calls[new_at - 2]}: {new.error}"
        check_exactly_once(world.broker, world.workload)


def frozen(place):
    """A run that is held at a request, and its world."""
    world = World(SMALL)
    job = start(world, Job)
    job.run_until(place)
    return world, job


def test_failed_run_leaves_nothing_open():
    """Also of partitions whose task has sent no message, and may still run."""
    for way, number in product((Way.REFUSED, Way.UNKNOWN), requests(SMALL, Job)):
        job = Job(World(Workload(SMALL.batches[:1])), Fault(number, way))
        with suppress(*ENDED):
            job.run()
        if job.schedule.fired and job.schedule.fired[0].role != "planner":
            check_nothing_open(job.world.broker)
