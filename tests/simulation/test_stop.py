"""A query is stopped: `abort` runs while a task still does, and leaves nothing open."""

import pytest

from spark_eos.errors import SparkEosError
from tests.simulation.driver import GROUP, Driver, World, workload
from tests.simulation.explore import finish
from tests.simulation.faults import KilledError
from tests.simulation.freeze import Frozen
from tests.simulation.oracle import check_nothing_open, visible_values

pytestmark = pytest.mark.usefixtures("simulated")

WORKLOAD = workload((1, 2), group=GROUP)
LAST_LOOKS = 3  # how often `abort` sleeps before Spark must have ended the task


def stop_while_a_task_runs(frozen_at, woken_at):
    """Task 1 is frozen at a request and wakes when `abort` waits; returns the world after it."""
    world = World(WORKLOAD)
    driver = Driver(world)
    driver.add_offsets(0)
    writer = driver.plan()
    ended = driver.run_task(writer, 0, 0, WORKLOAD.batches[0][0])
    slow = Driver(world)
    task = Frozen(lambda: slow.run_task(writer, 0, 1, WORKLOAD.batches[0][1]), slow.schedule)
    task.run_until(frozen_at)
    sleeps = []

    def wake():
        sleeps.append(1)
        if len(sleeps) == woken_at:
            task.run_until(None)

    driver.schedule.on_sleep = wake
    driver.abort([ended, None], 0)
    assert len(sleeps) == LAST_LOOKS
    assert task.ended
    assert task.error is None or isinstance(task.error, SparkEosError | KilledError)
    return world


@pytest.mark.parametrize("woken_at", range(1, LAST_LOOKS + 1))
@pytest.mark.parametrize("frozen_at", range(1, 5))
def test_abort_ends_what_a_running_task_opens(frozen_at, woken_at):
    world = stop_while_a_task_runs(frozen_at, woken_at)
    check_nothing_open(world.broker)
    assert not visible_values(world.broker)[0]
    finish(world)
