"""The power fails: what is not on the log's disk is gone, and what was sent to Kafka is not.

`test_every_crash_point.py` has a power cut behind each request, also while a crash is recovered.
"""

from itertools import product

import pytest

from tests.simulation.driver import GROUP, Driver, World, workload
from tests.simulation.explore import finish, run
from tests.simulation.faults import Fault, Way

pytestmark = pytest.mark.usefixtures("simulated")

WORKLOAD = workload((1, 1), group=GROUP)
FAILURES = (Way.REFUSED, Way.UNKNOWN)


def place(calls, beginning):
    return next(number for number, name in enumerate(calls, 1) if name.startswith(beginning))


def test_decision_is_on_the_disk_before_a_transaction_ends():
    calls = finish(World(WORKLOAD)).schedule.calls
    decided, ended = place(calls, "Delta commit of 0 Prep"), place(calls, "EndTxn(commit)")
    assert "Delta sync" in calls[decided : ended - 1]


def test_decision_is_on_the_disk_before_the_same_application_completes_it():
    """It owns the query already, so it logs no start, which would sync what is before it."""
    decided = place(finish(World(WORKLOAD)).schedule.calls, "Delta commit of 0 Prep")
    killed = Driver(World(WORKLOAD), Fault(decided, Way.LOST))
    run(killed)
    again = Driver(killed.world, number=killed.number)
    again.run()
    assert "Delta sync" in again.schedule.calls[: place(again.schedule.calls, "EndTxn(commit)") - 1]


@pytest.mark.parametrize("way", FAILURES)
def test_power_fails_when_the_log_did(way):
    """The append fails, so does a look at the log behind it, `abort` goes on: then the power."""
    decided = place(finish(World(WORKLOAD)).schedule.calls, "Delta commit of 0 Prep")
    met = 0
    for second, again, later in product(range(1, 5), FAILURES, range(1, 20)):
        driver = Driver(
            World(WORKLOAD),
            Fault(decided, way),
            Fault(decided + second, again),
            Fault(decided + second + later, Way.POWER_CUT),
        )
        run(driver)
        met += any(step.way is Way.POWER_CUT for step in driver.schedule.fired)
        finish(driver.world)
    assert met > 20, "hardly any power cut was met"
