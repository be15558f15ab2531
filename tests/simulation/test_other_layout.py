"""Two drivers run a batch again that the log has as aborted, each with partitions of its own."""

from collections import Counter

import pytest

from spark_eos.errors import FencedError
from tests.simulation.driver import Driver, World, workload
from tests.simulation.explore import finish
from tests.simulation.oracle import visible_values

pytestmark = pytest.mark.usefixtures("simulated")

WORKLOAD = workload((1, 1))
ROWS = WORKLOAD.values(1)


def world_with_an_aborted_batch():
    """A task failed, and the others were aborted: the log stands at batch 0."""
    world = World(WORKLOAD)
    driver = Driver(world)
    driver.add_offsets(0)
    ended = driver.run_task(driver.plan(), 0, 0, WORKLOAD.batches[0][0])
    driver.abort([ended, None], 0)
    assert world.storage.commits[-1].records, "the abort is not in the log"
    return world


def run_all_in(driver, writer, partition, partitions):
    """Every row is in one partition, so no other id is used."""
    rows = [ROWS if number == partition else () for number in range(partitions)]
    messages = [driver.run_task(writer, 0, n, values) for n, values in enumerate(rows)]
    driver.commit(messages, 0)


@pytest.mark.parametrize("partition", [1, 3], ids=["the same id", "an id of its own"])
def test_old_driver_that_planned_it_too_is_fenced(partition):
    world = world_with_an_aborted_batch()
    old, new = Driver(world), Driver(world)
    planned = old.plan()
    run_all_in(new, new.plan(), 1, 2)
    with pytest.raises(FencedError, match="another driver moved the log to batch 0"):
        run_all_in(old, planned, partition, 4)
    assert visible_values(world.broker)[0] == Counter(ROWS)


def test_aborted_batch_is_written_by_the_next_driver():
    world = world_with_an_aborted_batch()
    finish(world)
    assert visible_values(world.broker)[0] == Counter(ROWS)
