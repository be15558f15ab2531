"""A driver was overtaken, and a task of it opens a transaction that no batch comes across again."""

import pytest

from tests.simulation.driver import Driver, World, workload
from tests.simulation.freeze import Frozen, start
from tests.simulation.oracle import check_no_wrong_row, check_nothing_open

pytestmark = pytest.mark.usefixtures("simulated")

# The partition of the late task has no rows any more.
WORKLOAD = workload((1, 1), (1, 0), (1, 0))
BETWEEN_BATCHES_MS = 31_000


def calls_of_the_new_driver():
    """What it asks for, from its start to its end."""
    world = World(WORKLOAD)
    Driver(world).add_offsets(0)
    driver = Driver(world)
    driver.run()
    return driver.schedule.calls


@pytest.mark.parametrize("held_at", [5, 6])  # it has begun, and has sent its rows
def test_late_task_of_an_overtaken_driver_is_ended_by_the_one_that_goes_on(held_at):
    world = World(WORKLOAD)
    old = Driver(world)
    slow = Driver(world, number=old.number)
    old.add_offsets(0)
    writer = old.plan()
    late = Frozen(lambda: slow.run_task(writer, 0, 1, WORKLOAD.batches[0][1]), slow.schedule)
    new = start(world)
    new.run_until(calls_of_the_new_driver().index("file commits/0") + 2)
    late.run_until(held_at)
    old.abort([None, None], 0)
    world.broker.now_ms += BETWEEN_BATCHES_MS
    new.run_until(None)
    assert new.error is None
    check_nothing_open(world.broker)
    check_no_wrong_row(world.broker, WORKLOAD, 3)
    late.run_until(None)
    check_nothing_open(world.broker)
    check_no_wrong_row(world.broker, WORKLOAD, 3)
