"""Every process. One deadline for a callback, created at its start and passed to every call."""

import random
import time
from dataclasses import dataclass, field
from typing import Final, Protocol

FIRST_PAUSE_S: Final = 0.005
LAST_PAUSE_S: Final = 0.2

# A coordinator or leader that was replaced, or one that is loading, may answer from the past for so
# long. An answer that does not fit is asked for again.
OUTDATED_S: Final = 5.0
# A broker may learn of a new topic this much later than the broker that was asked to create it.
NEW_TOPIC_S: Final = 1.0


class Clock(Protocol):
    """What a step needs to know of time. The module `time` is a clock."""

    def time(self) -> float:
        """Seconds since 1970. People can set this clock."""

    def monotonic(self) -> float:
        """Seconds that only go forward."""

    def sleep(self, seconds: float, /) -> None:
        """Return after so many seconds."""


@dataclass(frozen=True, slots=True)
class Deadline:
    """A point in time on a monotonic clock, in seconds."""

    at: float
    clock: Clock = field(default=time, repr=False, compare=False)

    @classmethod
    def after_ms(cls, ms: float, clock: Clock = time) -> "Deadline":
        """The deadline that is `ms` from now."""
        return cls(clock.monotonic() + ms / 1000, clock)

    def at_most_s(self, seconds: float) -> "Deadline":
        """This deadline, or an earlier one for a single attempt."""
        return Deadline(min(self.at, self.clock.monotonic() + seconds), self.clock)

    @property
    def remaining_s(self) -> float:
        """Seconds that are left, never below zero."""
        return max(0.0, self.at - self.clock.monotonic())

    @property
    def remaining_ms(self) -> float:
        """Milliseconds that are left, never below zero."""
        return self.remaining_s * 1000

    @property
    def passed(self) -> bool:
        """Whether the deadline is over."""
        return self.clock.monotonic() >= self.at


class Backoff:
    """Pauses that grow from 5 to 200 ms, with jitter, within a deadline."""

    def __init__(self, deadline: Deadline) -> None:
        self._deadline = deadline
        self._next_s = FIRST_PAUSE_S

    def wait(self) -> bool:
        """Pause, but not longer than the deadline. Return whether time is left."""
        # Jitter keeps two drivers apart. No secret depends on it.
        jitter = random.uniform(0.5, 1)  # noqa: S311
        self._deadline.clock.sleep(min(self._next_s * jitter, self._deadline.remaining_s))
        self._next_s = min(self._next_s * 2, LAST_PAUSE_S)
        return not self._deadline.passed
