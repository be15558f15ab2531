"""A driver decided a batch, part of it timed out, and its `abort` comes when another goes on."""

import copy
from contextlib import suppress
from itertools import count

import pytest

from spark_eos.errors import SparkEosError
from tests.simulation.driver import GROUP, Driver, World, workload
from tests.simulation.faults import CrashError, Fault, Way
from tests.simulation.freeze import start
from tests.simulation.oracle import check_exactly_once

pytestmark = pytest.mark.usefixtures("simulated")

WORKLOAD = workload((1, 1), group=GROUP)


def decided_in_part(way):
    """A world in which a batch is decided and torn, and the messages of its driver."""
    alone = Driver(World(WORKLOAD))
    alone.add_offsets(0)
    alone.commit(alone.run_tasks(0), 0)
    calls = enumerate(alone.schedule.calls, 1)
    first_end = next(number for number, name in calls if name.startswith("EndTxn"))
    world = World(WORKLOAD)
    old = Driver(world, Fault(first_end, way))
    old.add_offsets(0)
    messages = old.run_tasks(0)
    with suppress(SparkEosError, CrashError):
        old.commit(messages, 0)
    assert old.schedule.fired
    return world, messages, old.number


@pytest.mark.parametrize("is_same_application", [False, True])
@pytest.mark.parametrize("way", [Way.FIRST_TIMED_OUT, Way.LAST_TIMED_OUT, Way.ALL_TIMED_OUT])
def test_late_abort_leaves_the_driver_alone_that_mends_the_batch(way, is_same_application):
    torn, messages, number_of_old = decided_in_part(way)
    for number in count(1):
        world = copy.deepcopy(torn)
        new = start(world, number=number_of_old if is_same_application else None)
        new.run_until(number)
        if new.ended:
            break
        Driver(world, number=number_of_old).abort(messages, 0)
        new.run_until(None)
        assert new.error is None, f"at request {number}: {new.error!r}"
        check_exactly_once(world.broker, world.workload)
    assert number > 10


def test_late_abort_of_an_undecided_attempt_leaves_the_next_run_alone_that_decided_the_batch():
    """The query was started again in the same application. A task of the first run sent nothing."""
    two_batches = workload((1, 1), (1, 1), group=GROUP)
    first = World(two_batches)
    failed = Driver(first)
    failed.add_offsets(0)
    messages = [failed.run_tasks(0)[0], None]
    left_alone = 0
    for number in count(1):
        world = copy.deepcopy(first)
        again = start(world, number=failed.number)
        again.run_until(number)
        if again.ended:
            break
        is_decided = any(commit.records for commit in world.storage.commits)
        Driver(world, number=failed.number).abort(messages, 0)
        again.run_until(None)
        left_alone += is_decided
        assert not is_decided or again.error is None, f"at request {number}: {again.error!r}"
        if again.error is None:
            check_exactly_once(world.broker, world.workload)
    assert left_alone > 10
