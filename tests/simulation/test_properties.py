"""Schedules that nobody thought of: random workloads, faults, time-outs and turns of two drivers.

The examples are the same in each run (`derandomize`), so a red test stays red.
"""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.simulation.broker import EPOCH_MAX, Broker
from tests.simulation.driver import GROUP, TOPICS, Driver, World, workload
from tests.simulation.explore import check_aborted, check_failed_well, check_now, finish, run
from tests.simulation.faults import TIME_OUTS, Fault, Way, time_out
from tests.simulation.freeze import start

pytestmark = pytest.mark.usefixtures("simulated")

bounded = settings(
    max_examples=200,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)

batches = st.lists(
    st.lists(st.integers(0, 3), min_size=1, max_size=3).map(tuple), min_size=1, max_size=4
)
workloads = st.builds(
    lambda rows, group, attempts: workload(*rows, group=group, task_attempts=attempts),
    batches,
    st.sampled_from([None, GROUP]),
    st.integers(1, 2),
)
worlds = st.builds(
    lambda load, epoch: World(load, broker=Broker(TOPICS, first_epoch=epoch)),
    workloads,
    st.sampled_from([0, 0, 0, EPOCH_MAX - 3]),
)
faults = st.builds(Fault, st.integers(1, 60), st.sampled_from(Way))
# One start: up to two faults in it, and what times out before the next.
starts = st.tuples(
    st.lists(faults, max_size=2, unique_by=lambda fault: fault.number),
    st.sampled_from([None, None, *TIME_OUTS]),
)


@bounded
@given(worlds, st.lists(starts, max_size=5))
def test_any_history_of_faults_ends_with_each_row_once(world, history):
    for planned, down in history:
        driver = Driver(world, *planned)
        failure = run(driver)
        if len(driver.schedule.fired) == 1:
            check_aborted(driver, failure)
        if down is not None:
            time_out(world.broker, down)
    finish(world)


@bounded
@given(
    worlds,
    st.lists(st.tuples(st.integers(0, 2), st.integers(1, 25)), max_size=12),
    # Ids expire after a week: no driver is held between two requests for so long.
    st.sampled_from([None, *(way for way in TIME_OUTS if way is not Way.ALL_EXPIRED)]),
)
def test_any_turns_of_three_drivers_end_with_each_row_once(world, turns, timed_out):
    """Each turn lets one of the drivers go on for so many requests."""
    drivers = [start(world) for _ in range(3)]
    for number, requests in turns:
        drivers[number].run_until(drivers[number].requests + requests)
        check_now(world)
    if timed_out is not None:
        time_out(world.broker, timed_out)
    for driver in drivers:
        driver.run_until(None)
        check_now(world)
        check_failed_well(driver)
    time_out(world.broker, Way.ALL_TIMED_OUT)
    finish(world)
