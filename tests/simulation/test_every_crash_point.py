"""Every request of a query fails once, in every way, and a start without a fault mends it.

Requests are counted, so no failpoint can be forgotten: the loop ends when a run has fewer requests.
A failure names the requests at which the faults were.
"""

import pytest

from tests.simulation.broker import EPOCH_MAX, Broker
from tests.simulation.driver import GROUP, TOPICS, Driver, World, workload
from tests.simulation.explore import explore, finish, run
from tests.simulation.faults import TIME_OUTS, Fault, Way

pytestmark = pytest.mark.usefixtures("simulated")

ALL_BATCHES = 9
CRASHES = (Way.CRASHED, Way.LOST, Way.POWER_CUT)

WORKLOADS = {
    "rows and group": workload((2, 1), (0, 1), (1, 0, 1), group=GROUP),
    # The first and the third of a task go to one partition of Kafka: so there is an order.
    "rows alone": workload((1, 3), (1, 0), (1, 1, 1)),
    "empty batches and group": workload((0, 0), (1, 0), (0,), (1, 1), group=GROUP),
    "tasks tried twice": workload((1, 1), (2, 0), group=GROUP, task_attempts=2),
    "ends that arrive backwards": workload((1, 1, 1), (1,), group=GROUP, backwards=True),
}
SMALL = workload((1, 1), (1, 0), group=GROUP)


@pytest.fixture(params=WORKLOADS.values(), ids=WORKLOADS.keys())
def world(request):
    return World(request.param)


def test_without_a_fault_each_row_is_visible_once(world):
    driver = finish(world)
    assert not driver.schedule.fired
    assert len(driver.schedule.calls) > 20, "the query has hardly asked for anything"


@pytest.mark.parametrize("way", Way)
def test_one_fault(world, way):
    found = explore(world, [way], [ALL_BATCHES])
    assert found.points >= len(finish(World(world.workload)).schedule.calls)


@pytest.mark.parametrize("down", TIME_OUTS)
def test_crash_and_then_time_outs_while_nobody_runs(world, down):
    """All transactions time out, or just some: a torn batch, which the same rows mend."""
    explore(world, CRASHES, [ALL_BATCHES], down=[down])


@pytest.mark.parametrize("name", ["rows and group", "empty batches and group"])
def test_second_crash_while_the_first_is_recovered(name):
    explore(World(WORKLOADS[name]), CRASHES, [ALL_BATCHES, 1])


def test_any_second_fault_while_the_first_is_recovered():
    ways = (Way.CRASHED, Way.LOST, Way.REFUSED, Way.UNKNOWN, Way.FIRST_TIMED_OUT)
    explore(World(workload((1,), (1,), group=GROUP)), ways, [ALL_BATCHES, 1])


def test_two_crashes_each_with_time_outs():
    explore(World(SMALL), CRASHES, [ALL_BATCHES, 1], down=[None, *TIME_OUTS])


def test_three_crashes():
    explore(World(workload((1, 1), (1,))), CRASHES, [ALL_BATCHES, 1, 1])


@pytest.mark.parametrize("way", [Way.CRASHED, Way.LOST, Way.UNKNOWN, Way.FIRST_TIMED_OUT])
@pytest.mark.parametrize("first_epoch", range(EPOCH_MAX - 4, EPOCH_MAX))
def test_one_fault_where_epochs_run_out(first_epoch, way):
    """The next InitProducerId then gives a new producer id, and the old one is not found."""
    broker = Broker(TOPICS, first_epoch=first_epoch)
    explore(World(SMALL, broker=broker), [way], [ALL_BATCHES])


def test_requests_are_the_same_each_time():
    """Else a number would not name a request."""
    first, second = (finish(World(SMALL)).schedule.calls for _ in range(2))
    assert first == second


def test_failure_names_the_request():
    world = World(SMALL)
    driver = Driver(world, Fault(2, Way.REFUSED))
    run(driver)
    assert str(driver.schedule.fired[0]) == (
        "request 2 (read metadata, by the planner) was refused, nothing happened"
    )
