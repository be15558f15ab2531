"""Python workers killed while they write: Spark runs the task again, Kafka keeps one copy."""

import os
import signal

import pytest


def test_worker_killed_in_the_middle_of_a_write(scenario):
    scenario.add_files(2)
    with scenario.driver("written") as driver:
        os.kill(driver.wait_for("written"), signal.SIGKILL)
        driver.finish()
    scenario.check()


@pytest.mark.slow
def test_task_that_fails_twice_and_then_succeeds(scenario):
    scenario.add_files(1)
    with scenario.driver("begun", "prepared", partitions=1) as driver:
        for step in ("begun", "prepared"):
            os.kill(driver.wait_for(step), signal.SIGKILL)
        driver.finish()
    scenario.check()
