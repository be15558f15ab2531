"""Which process runs now, and the one door from it to the outside.

A driver is a planner, a commit worker and tasks: Python processes that share no memory. Here they
share an interpreter, so each process has sessions of its own. Every
request to a broker, to the log or to Spark's checkpoint goes through `port`, where it is counted
and where it can fail.
"""

from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

_current: ContextVar["Process"] = ContextVar("process")


@dataclass
class Process:
    """A Python worker of a driver: its world, its driver's schedule of faults, what it keeps."""

    role: str
    world: object
    schedule: object
    driver: int = 0  # a number for the driver that it belongs to
    sessions: object = None
    killed: bool = False


def current():
    """The process whose code runs."""
    return _current.get()


@contextmanager
def running(process):
    """Run the code inside in this process."""
    token = _current.set(process)
    try:
        yield process
    finally:
        _current.reset(token)


def port(name, effect, refuse):
    """A request to the outside. `refuse` says how the caller hears that it got no good answer."""
    process = current()
    return process.schedule.call(process, name, effect, refuse)


class Clock:
    """Stands in for the module `time`: it moves when somebody sleeps, and with each request."""

    START = 1_700_000_000.0
    SHORTEST_S = 1.0  # half a minute of asking again is enough: nobody else runs here

    def time(self):
        return self.START + self.monotonic()

    def monotonic(self):
        return current().world.broker.now_ms / 1000

    def sleep(self, seconds):
        current().world.broker.now_ms += round(max(seconds, self.SHORTEST_S) * 1000)
        current().schedule.on_sleep()
