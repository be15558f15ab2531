"""One deadline for a callback, made at its start and passed down: no call without a limit."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Deadline:
    """A point in time on a monotonic clock, in seconds."""

    at: float
    clock: Callable[[], float] = field(default=time.monotonic, repr=False, compare=False)

    @classmethod
    def after_ms(cls, ms: float, clock: Callable[[], float] = time.monotonic) -> "Deadline":
        """The deadline that is `ms` from now."""
        return cls(clock() + ms / 1000, clock)

    def at_most_s(self, seconds: float) -> "Deadline":
        """The same deadline, or an earlier one for a single attempt."""
        return Deadline(min(self.at, self.clock() + seconds), self.clock)

    @property
    def remaining_s(self) -> float:
        """Seconds that are left, never below zero."""
        return max(0.0, self.at - self.clock())

    @property
    def remaining_ms(self) -> float:
        """Milliseconds that are left, never below zero."""
        return self.remaining_s * 1000

    @property
    def passed(self) -> bool:
        """Whether it is over."""
        return self.clock() >= self.at
