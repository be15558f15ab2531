"""Holds a driver or a task still at a request and lets it go on later.

It runs in a thread of its own, but never at the same time as anything else: whoever waits gets the
turn only when the other has stopped, so a run is the same each time.
"""

import threading

from tests.simulation.driver import Driver, World
from tests.simulation.explore import run
from tests.simulation.faults import Fault

# Far beyond what any run takes: a test that hangs fails.
TURN_TIMEOUT_S = 60


class Frozen:
    """Runs `work` up to a request of `schedule`, which is not sent until it goes on."""

    def __init__(self, work, schedule):
        self.error = None
        self.ended = False
        self._stop_at = None
        self._go = threading.Semaphore(0)
        self._stopped = threading.Semaphore(0)
        self._thread = threading.Thread(target=self._run, args=(work,), daemon=True)
        self._thread.start()
        self._requests = 0
        schedule.before_call = self._before_call

    def run_until(self, number):
        """Go on until request `number` of this run is next, or to the end where None."""
        if self.ended:
            return
        self._stop_at = number
        self._go.release()
        assert self._stopped.acquire(timeout=TURN_TIMEOUT_S), "the other does not give the turn"

    @property
    def requests(self):
        """How many were sent, or are next."""
        return self._requests

    def _run(self, work):
        self._go.acquire()
        try:
            work()
        except BaseException as error:
            self.error = error
        self.ended = True
        self._stopped.release()

    def _before_call(self, number):
        self._requests = number
        if number == self._stop_at:
            self._stopped.release()
            self._go.acquire()


def start(world, kind=Driver, **given):
    """A driver that has not sent its first request."""
    driver = kind(world, **given)
    return Frozen(driver.run, driver.schedule)


def woken_after_a_death(workload, frozen_at, died_at, way):
    """An old driver was frozen, a new one died, the old one went on to its end."""
    world = World(workload)
    old = start(world)
    old.run_until(frozen_at)
    run(Driver(world, Fault(died_at, way)))
    old.run_until(None)
    return world, old
