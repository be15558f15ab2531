"""Starts the driver, and starts it again whenever it ends: what a service manager would do."""

import threading
import time
from contextlib import ExitStack

from chaos.driver import Driver
from chaos.process import END_S, Guard

POLL_S = 0.1
RESTART_AFTER_S = 0.3
STOP_S = 180


class Supervisor:
    """One driver at a time, and the old ones that were given up. `settings` are by number."""

    def __init__(self, folder, settings, history):
        self._folder = folder
        self._settings = settings
        self._history = history
        self._all = []
        self._lock = threading.RLock()
        self._down_until = 0.0
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="supervisor", daemon=True)
        self.driver = None
        self.failures = []
        self._watched = []
        self._guard = Guard()

    def start(self):
        self._start_driver()
        self._thread.start()

    def hold_down(self, seconds):
        """No new driver for a while."""
        self._down_until = time.monotonic() + seconds

    def replace(self, **place):
        """Start a new driver beside the one that runs, as a manager does that lost sight of it.

        `place` is where its checkpoint and log are, if it does not have those of the others.
        """
        with self._lock:
            return self._start_driver(**place)

    def stop(self, timeout=STOP_S):
        """Let the driver end in order; True where it did."""
        self._stopping.set()
        with self._lock:
            for driver in self._watched:
                driver.stop()
        deadline = time.monotonic() + timeout
        while self._watched and time.monotonic() < deadline:
            time.sleep(POLL_S)
        return not self._watched

    def close(self):
        """End all drivers, also where one makes trouble."""
        self._stopping.set()
        with ExitStack() as stack:
            stack.callback(self._guard.close)
            with self._lock:  # none is started any more
                for driver in self._all:
                    stack.callback(driver.close)
        if self._thread.is_alive():
            self._thread.join(END_S)

    def _start_driver(self, **place):
        number = len(self._all) + 1
        driver = Driver(number, self._folder, self._settings(number, **place))
        self._all.append(driver)
        self._watched.append(driver)
        self._guard.watch(driver.pid)
        self.driver = driver
        self._history.add("driver", phase="start", number=driver.number, pid=driver.pid)
        return driver

    def _watch(self):
        while not (self._stopping.is_set() and not self._watched):
            with self._lock:
                for driver in list(self._watched):
                    if driver.ended():
                        self._bury(driver)
                if self.driver not in self._watched:
                    if self._watched:
                        self.driver = self._watched[-1]  # an old one that woke up, and has won
                    elif self._may_start():
                        self._start_driver()
            time.sleep(POLL_S)

    def _may_start(self):
        return not self._stopping.is_set() and time.monotonic() >= self._down_until

    def _bury(self, driver):
        outcome, text = driver.outcome()
        if outcome == "failed":
            self.failures.append(text)
        self._history.add(
            "driver", phase="end", number=driver.number, pid=driver.pid, outcome=outcome, text=text
        )
        self._watched.remove(driver)
        if driver is self.driver:
            self._down_until = max(self._down_until, time.monotonic() + RESTART_AFTER_S)
