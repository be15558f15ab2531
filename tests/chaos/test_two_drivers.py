"""An old driver that was frozen wakes up when a new one has taken over."""

import os
import signal

import pytest


@pytest.mark.parametrize("step", ["prepared", "checked", "decided"])
def test_frozen_driver_that_wakes_up_late_is_fenced(scenario, step):
    scenario.add_files(3)
    old = scenario.driver().start()
    old.arm(step)
    worker = old.wait_for(step)
    old.signal(signal.SIGSTOP)
    os.kill(worker, signal.SIGSTOP)
    with scenario.driver() as new:
        new.finish()
    scenario.check()
    os.kill(worker, signal.SIGCONT)
    old.go(step)
    old.signal(signal.SIGCONT)
    old.fail()
    scenario.check()


def test_new_driver_goes_on_after_the_old_one_wakes_up_in_the_middle(scenario):
    """The old one holds an undecided batch while the new one is between two batches."""
    scenario.add_files(3)
    old = scenario.driver().start()
    old.arm("checked")
    worker = old.wait_for("checked")
    old.signal(signal.SIGSTOP)
    os.kill(worker, signal.SIGSTOP)
    new = scenario.driver().start()
    new.arm("completed")
    new.wait_for("completed")
    os.kill(worker, signal.SIGCONT)
    old.go("checked")
    old.signal(signal.SIGCONT)
    assert "FencedError" in old.fail()
    new.go("completed")
    new.finish()
    scenario.check()
