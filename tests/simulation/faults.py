"""Where and how a request fails. A schedule belongs to one driver and counts its requests."""

from dataclasses import dataclass
from enum import Enum


class Way(Enum):
    """How a request fails, or what else happens at that moment."""

    REFUSED = "was refused, nothing happened"
    CRASHED = "was never sent: the driver died"
    LOST = "happened, and the driver died before the answer"
    UNKNOWN = "happened, and the answer was a time-out"
    POWER_CUT = "happened, and the power failed: what was not on the log's disk is gone"
    OUTAGE = "and all that followed were refused"
    KILLED = "happened, and its Python worker was killed"
    ALL_TIMED_OUT = "came after all open transactions had timed out"
    FIRST_TIMED_OUT = "came after the oldest open transaction had timed out"
    LAST_TIMED_OUT = "came after the newest open transaction had timed out"
    ALL_EXPIRED = "came when all transactions had timed out and the coordinator knew no id any more"


TIME_OUTS = (Way.ALL_TIMED_OUT, Way.FIRST_TIMED_OUT, Way.LAST_TIMED_OUT, Way.ALL_EXPIRED)


@dataclass(frozen=True)
class Fault:
    """What befalls the request of this number."""

    number: int
    way: Way


@dataclass(frozen=True)
class Step:
    """A request that a fault befell."""

    number: int
    name: str
    role: str
    way: Way

    def __str__(self):
        return f"request {self.number} ({self.name}, by the {self.role}) {self.way.value}"


class CrashError(BaseException):
    """The driver is gone with all of its processes. Nothing may catch it and go on."""


class KilledError(BaseException):
    """One Python worker is gone; its driver hears of it."""


class Schedule:
    """The faults of one driver. What has happened is in `calls` and `fired`."""

    def __init__(self, *faults):
        self._ways = {fault.number: fault.way for fault in faults}
        self.calls = []
        self.fired = []
        self.crashed = False
        self._outage = False
        self.before_call = lambda _number: None
        self.on_sleep = lambda: None

    def call(self, process, name, effect, refuse):
        """Do what `effect` does, unless it is to fail."""
        self._raise_if_gone(process)
        self.calls.append(name)
        number = len(self.calls)
        self.before_call(number)
        way = self._ways.get(number)
        if way is not None:
            self.fired.append(Step(number, name, process.role, way))
        process.world.broker.now_ms += 1
        if way in TIME_OUTS:
            time_out(process.world.broker, way)
        if way is Way.CRASHED:
            self.crashed = True
            self._raise_if_gone(process)
        self._outage = self._outage or way is Way.OUTAGE
        if self._outage or way is Way.REFUSED:
            return refuse()
        answer = effect()
        self.crashed = way in (Way.LOST, Way.POWER_CUT)
        if way is Way.POWER_CUT:
            process.world.storage.cut_power()
        process.killed = way is Way.KILLED
        self._raise_if_gone(process)
        return refuse() if way is Way.UNKNOWN else answer

    def _raise_if_gone(self, process):
        """The dead do nothing, whatever their `except` clauses try."""
        if self.crashed:
            raise CrashError
        if process.killed:
            raise KilledError


def time_out(broker, way):
    """Let the coordinator abort open transactions, oldest first."""
    names = broker.ongoing()
    chosen = {
        Way.ALL_TIMED_OUT: names,
        Way.FIRST_TIMED_OUT: names[:1],
        Way.LAST_TIMED_OUT: names[-1:],
        Way.ALL_EXPIRED: names,
    }
    for name in chosen[way]:
        broker.time_out(name)
    if way is Way.ALL_EXPIRED:
        for name in list(broker.transactions):
            broker.expire(name)
