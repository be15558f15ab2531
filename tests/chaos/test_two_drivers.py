"""An old driver that was frozen wakes up when a new one has taken over."""

import os
import signal

import pytest

from tests.chaos.conftest import slow


def freeze(driver, step):
    worker = driver.wait_for(step)
    driver.signal(signal.SIGSTOP)
    os.kill(worker, signal.SIGSTOP)
    return worker


def wake(driver, step, worker):
    driver.go(step)
    os.kill(worker, signal.SIGCONT)
    driver.signal(signal.SIGCONT)


@pytest.mark.parametrize("step", [*map(slow, ("planned", "prepared", "checked")), "decided"])
def test_frozen_driver_that_wakes_up_late_is_fenced(scenario, step):
    scenario.add_files(3)
    with scenario.driver(step) as old:
        worker = freeze(old, step)
        scenario.run()
        scenario.check()
        wake(old, step, worker)
        old.fail()
    scenario.check()


@pytest.mark.slow
def test_new_driver_goes_on_after_the_old_one_wakes_up_in_the_middle(scenario):
    """The old one holds an undecided batch while the new one is at its next."""
    scenario.add_files(3)
    with scenario.driver("checked") as old:
        worker = freeze(old, "checked")
        with scenario.driver("completed") as new:
            new.wait_for("completed")
            wake(old, "checked", worker)
            old.fail("FencedError")
            new.go("completed")
            new.finish()
    scenario.check()
