"""A group that somebody else reads with now is not moved back by a query that starts again."""

from collections import Counter
from itertools import count, product

import pytest

from tests.simulation.driver import GROUP, Driver, World, workload
from tests.simulation.explore import requests, run
from tests.simulation.faults import Fault, Way, time_out
from tests.simulation.freeze import woken_after_a_death
from tests.simulation.oracle import check_no_wrong_row, check_nothing_open, visible_values

pytestmark = pytest.mark.usefixtures("simulated")

WORKLOAD = workload((1, 1), group=GROUP)


def states_after(way):
    """The driver failed, or died, at each of its requests."""
    for number in count(1):
        driver = Driver(World(WORKLOAD), Fault(number, way))
        run(driver)
        if not driver.schedule.fired:
            return
        yield driver.world


def states_after_an_old_driver():
    """One died at each of its requests; then another, frozen at each of its own, went on."""
    for frozen_at, died_at in product(requests(WORKLOAD), repeat=2):
        world, _ = woken_after_a_death(WORKLOAD, frozen_at, died_at, Way.LOST)
        time_out(world.broker, Way.ALL_TIMED_OUT)
        yield world


def check_the_consumer_keeps_its_place(states):
    """It goes on from the end of the batch, then the query starts again. Returns what was left."""
    found = set()
    for world in states:
        if world.broker.groups.get(GROUP) != WORKLOAD.offsets(0):
            continue  # nobody could have gone on from there
        rows, _ = visible_values(world.broker)
        found.add("whole" if rows == Counter(WORKLOAD.values(1)) else "torn")
        further = {place: offset + 5 for place, offset in WORKLOAD.offsets(0).items()}
        world.broker.groups[GROUP] = dict(further)
        Driver(world).run()
        assert world.broker.groups[GROUP] == further
        check_no_wrong_row(world.broker, WORKLOAD, 1)
        check_nothing_open(world.broker)
    return found


@pytest.mark.parametrize(("way", "left"), [(Way.LOST, "whole"), (Way.FIRST_TIMED_OUT, "torn")])
def test_driver_died_or_its_transaction_timed_out(way, left):
    assert left in check_the_consumer_keeps_its_place(states_after(way))


def test_old_driver_used_the_id_of_the_offsets_since():
    """Then the coordinator cannot say any more what became of them."""
    assert "whole" in check_the_consumer_keeps_its_place(states_after_an_old_driver())
