"""A query is stopped while it commits: `abort` runs beside a `commit` that nobody waits for.

Spark is interrupted and calls `abort` in another Python worker. The first one knows nothing of it.
"""

from collections import Counter
from contextlib import suppress
from itertools import count

import pytest

from tests.simulation.driver import GROUP, Driver, World, workload
from tests.simulation.explore import EXPECTED, check_now, finish
from tests.simulation.faults import CrashError, Fault, KilledError, Way
from tests.simulation.freeze import Frozen
from tests.simulation.oracle import check_exactly_once, check_nothing_open, visible_values

pytestmark = pytest.mark.usefixtures("simulated")

ROWS = workload((1, 1))
WORKLOADS = {
    "rows and offsets": workload((1, 1), group=GROUP),
    "an empty partition, behind another batch": workload((1,), (1, 0, 1)),
}


@pytest.fixture(params=WORKLOADS.values(), ids=WORKLOADS.keys())
def stopped_workload(request):
    return request.param


def prepared(driver):
    """All batches but the last, and of the last one what its tasks have sent."""
    *done, last = range(len(driver.world.workload.batches))
    for batch_id in done:
        driver.add_offsets(batch_id)
        driver.run_batch(batch_id)
    driver.add_offsets(last)
    return driver.run_tasks(last), last


def interleaved(world, commit_at, abort_at, commit_until, *faults):
    """`commit`, `abort`, `commit`, and both to their ends. Returns both."""
    driver = Driver(world)
    messages, last = prepared(driver)
    committing = Driver(world, number=driver.number)
    aborting = Driver(world, *faults, number=driver.number)
    commit = Frozen(lambda: committing.commit(messages, last), committing.schedule)
    abort = Frozen(lambda: aborting.abort(messages, last), aborting.schedule)
    commit.run_until(commit_at)
    abort.run_until(abort_at)
    commit.run_until(commit_until)
    abort.run_until(None)
    commit.run_until(None)
    return commit, abort


def interleavings(workload, *faults):
    """Each way in which the two can take turns, as the world after it; with faults of `abort`."""
    calls_of_commit, calls_of_abort = calls_of("commit", workload), calls_of("abort", workload)
    for commit_at in range(1, len(calls_of_commit) + 1):
        for abort_at in range(1, len(calls_of_abort) + 1):
            for commit_until in count(commit_at + 1):
                world = World(workload)
                commit, abort = interleaved(world, commit_at, abort_at, commit_until, *faults)
                assert abort.error is None
                assert commit.error is None or isinstance(commit.error, EXPECTED)
                yield world, commit
                if commit.requests < commit_until:
                    break


def calls_of(step, workload):
    """The requests of a `commit` or an `abort` that runs alone."""
    world = World(workload)
    planning = Driver(world)
    messages, last = prepared(planning)
    driver = Driver(world, number=planning.number)
    getattr(driver, step)(messages, last)
    return driver.schedule.calls


def check_whole_or_nothing(world, commit):
    """Before anybody starts again. Returns whether it is there."""
    check_now(world)
    seen, _ = visible_values(world.broker)
    last = len(world.workload.batches) - 1
    whole = Counter(world.workload.values(last + 1))
    assert seen in (Counter(world.workload.values(last)), whole), f"torn: {seen}"
    assert commit.error is not None or seen == whole
    if world.workload.group:
        moved = world.broker.groups.get(world.workload.group) == world.workload.offsets(last)
        assert moved == (seen == whole)
    return seen == whole


def test_batch_is_there_as_a_whole_or_not_at_all(stopped_workload):
    outcomes = Counter()
    for world, commit in interleavings(stopped_workload):
        outcomes[check_whole_or_nothing(world, commit)] += 1
        check_nothing_open(world.broker)
        finish(world)
    assert outcomes[True] > 100, "hardly any commit was first"
    assert outcomes[False] > 100, "hardly any abort was first"


def test_nothing_is_ended_where_the_log_did_not_take_the_intent():
    """What is open waits for the next start: `commit` may decide it at any moment."""
    calls = calls_of("abort", ROWS)
    intent = next(n for n, name in enumerate(calls, 1) if name == "Delta commit of 0 PrepareAbort")
    outcomes = Counter()
    for world, commit in interleavings(ROWS, Fault(intent, Way.REFUSED)):
        outcomes[check_whole_or_nothing(world, commit)] += 1
        finish(world)
    assert outcomes[True] > 100, "hardly any commit went on"


ONE_TASK_THEN = workload((1, 1), replayed=(("b0p0r0", "b0p1r0"),))


@pytest.mark.parametrize("way", [Way.REFUSED, Way.UNKNOWN, Way.CRASHED, Way.LOST, Way.KILLED])
def test_abort_that_fails_is_made_good_by_the_next_start_of_the_same_session(way):
    """Its planner remembers batches, and the batch comes back with fewer tasks."""
    intents = 0
    for number in count(1):
        world = World(ONE_TASK_THEN)
        session = Driver(world)
        aborting = Driver(world, Fault(number, way), number=session.number)
        messages, last = prepared(session)
        with suppress(CrashError, KilledError):
            aborting.abort(messages, last)
        if not aborting.schedule.fired:
            break
        check_now(world)
        assert not visible_values(world.broker)[0]
        states = [r.state.wire_name for c in world.storage.commits for r in c.records]
        intents += "PrepareAbort" in states and "CompleteAbort" not in states
        session.run()
        check_exactly_once(world.broker, world.workload)
    assert intents, "the abort never failed between its two rows"
