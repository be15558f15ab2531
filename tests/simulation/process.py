"""Which process runs now, and the one door from it to the outside.

A driver is a planner, a commit worker and tasks: Python processes that share no memory. Here they
share an interpreter, so what the product keeps in module variables is kept for each process. Every
request to a broker, to the log or to Spark's checkpoint goes through `port`, where it is counted
and where it can fail.
"""

from collections.abc import MutableMapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

_current: ContextVar["Process"] = ContextVar("process")


@dataclass
class Process:
    """A Python worker of a driver: its world, its driver's schedule of faults, what it keeps."""

    role: str
    world: object
    schedule: object
    driver: int = 0  # a number for the driver that it belongs to
    kept: dict[str, dict] = field(default_factory=dict)
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


class Kept(MutableMapping):
    """Stands in for a module's dictionary: each process has its own."""

    def __init__(self, name):
        self._name = name

    def _own(self):
        return current().kept.setdefault(self._name, {})

    def __getitem__(self, key):
        return self._own()[key]

    def __setitem__(self, key, value):
        self._own()[key] = value

    def __delitem__(self, key):
        del self._own()[key]

    def __iter__(self):
        return iter(self._own())

    def __len__(self):
        return len(self._own())


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
