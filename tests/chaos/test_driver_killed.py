"""SIGKILL of the driver at each numbered step, and what a restart makes of it."""

import os
import signal
import time

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


@pytest.mark.timeout(400)
def test_driver_killed_at_each_step_in_turn_loses_and_doubles_nothing(scenario):
    scenario.add_files(3)
    for step in STEPS:
        with scenario.driver() as driver:
            driver.arm(step)
            driver.wait_for(step)
            driver.kill()
    with scenario.driver() as driver:
        driver.finish()
    scenario.check()


def test_driver_killed_again_while_it_recovers(scenario):
    scenario.add_files(2)
    for step in ("decided", "surveyed"):
        with scenario.driver() as driver:
            driver.arm(step)
            driver.wait_for(step)
            driver.kill()
    with scenario.driver() as driver:
        driver.finish()
    scenario.check()


def test_workers_that_outlive_their_driver_do_no_harm(scenario):
    """The driver dies; its task goes on later, when a new driver has written the same batch."""
    scenario.add_files(2)
    old = scenario.driver().start()
    old.arm("begun")
    worker = old.wait_for("begun")
    os.kill(worker, signal.SIGSTOP)
    old.kill()
    new = scenario.driver().start()
    new.finish()
    old.go("begun")
    os.kill(worker, signal.SIGCONT)
    deadline = time.monotonic() + 15
    while os.path.exists(f"/proc/{worker}") and time.monotonic() < deadline:
        time.sleep(0.1)
    scenario.check(settle_s=20)


@pytest.mark.timeout(300)
def test_orphans_of_a_dead_driver_are_aborted_by_the_next_start_not_by_the_time_out(scenario):
    """Partition 3 is not used by the next run: nobody but the sweep can end its transaction."""
    scenario.add_files(1)
    with scenario.driver() as driver:
        driver.arm("checked")
        driver.wait_for("checked")
        driver.kill()
    assert open_partitions(scenario.bootstrap_servers, scenario.topic)
    with scenario.driver(partitions=1) as driver:
        driver.finish()
    scenario.check()
