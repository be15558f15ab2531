"""SIGKILL of the driver at each numbered step, and what a restart makes of it."""

import pytest

from tests.chaos.oracle import open_partitions

STEPS = [
    "planned",  # 1 recovered, no task has started
    "task-started",  # 2 no transaction yet
    "begun",  # 2 the transaction is open, without a row
    "written",  # 2 rows are on their way
    "prepared",  # 3 flushed, and the driver does not know it yet
    "checked",  # 5 looked at, not decided
    "decided",  # 5 in the log, none is ended
    "completed",  # 6 all are ended, and Spark does not know it yet
]


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "steps",
    [
        pytest.param(STEPS, marks=pytest.mark.slow, id="all"),
        # Before and behind the decision. The simulation has every request.
        pytest.param(["prepared", "decided"], id="some"),
    ],
)
def test_driver_killed_at_each_step_in_turn_loses_and_doubles_nothing(scenario, steps):
    scenario.add_files(3)
    for step in steps:
        with scenario.driver(step) as driver:
            driver.wait_for(step)
            driver.kill()
    scenario.run()
    scenario.check()


@pytest.mark.slow
def test_driver_killed_again_while_it_recovers(scenario):
    scenario.add_files(2)
    for step in ("decided", "surveyed"):
        with scenario.driver(step) as driver:
            driver.wait_for(step)
            driver.kill()
    scenario.run()
    scenario.check()


@pytest.mark.slow
def test_orphans_of_a_dead_driver_are_aborted_by_the_next_start_not_by_the_time_out(scenario):
    """The next run has one partition: nobody but the sweep can end the other transactions."""
    scenario.add_files(1)
    with scenario.driver("checked") as driver:
        driver.wait_for("checked")
        driver.kill()
    assert open_partitions(scenario.bootstrap_servers, scenario.topic)
    scenario.run(partitions=1)
    scenario.check()
