"""The log is gone, or another one is named: the query stops rather than write a batch twice."""

from itertools import count

import pytest

from spark_eos.errors import OperatorError
from tests.simulation.driver import GROUP, Driver, World, workload
from tests.simulation.explore import finish, run
from tests.simulation.faults import Fault, Way
from tests.simulation.log import Storage
from tests.simulation.oracle import check_exactly_once, check_no_wrong_row

pytestmark = pytest.mark.usefixtures("simulated")

WORKLOAD = workload((1, 1), (1, 0, 1), group=GROUP)


def states(way):
    """The driver died at each of its requests."""
    for number in count(1):
        driver = Driver(World(WORKLOAD), Fault(number, way))
        run(driver)
        if not driver.schedule.fired:
            return
        yield driver.schedule.fired[0], driver.world


@pytest.mark.parametrize("way", [Way.CRASHED, Way.LOST])
def test_log_lost_with_the_driver(way):
    stopped, finished = [], []
    for step, world in states(way):
        world.storage = Storage()
        try:
            Driver(world).run()
        except OperatorError:
            check_no_wrong_row(world.broker, WORKLOAD, 0)
            stopped.append(step)
        else:
            check_exactly_once(world.broker, WORKLOAD)
            finished.append(step)
    assert len(stopped) > 10, "hardly any state in which something was committed"
    assert len(finished) > 10, "hardly any state in which nothing was"


def test_nothing_is_written_by_the_query_that_stops():
    world = World(WORKLOAD)
    finish(world)
    written = {place: len(entries) for place, entries in world.broker.log.items()}
    del world.files["commits/1"]
    world.storage = Storage()
    with pytest.raises(OperatorError, match="Kafka knows of later runs"):
        Driver(world).run()
    assert {place: len(entries) for place, entries in world.broker.log.items()} == written
