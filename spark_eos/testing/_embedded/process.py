"""A process, told apart from a later one that got the same number.

The kernel hands out process ids again. A pid file that outlived its process must never lead to a
signal for a stranger, so a process is named by its pid *and* the moment it started.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
POLL_S = 0.02


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """Pid and start of a process. `started` is only compared, never read as a time."""

    pid: int
    started: str

    @classmethod
    def of(cls, pid: int) -> ProcessIdentity | None:
        """Identity of the live process with this pid, or None where there is none."""
        started = _started(pid)
        return None if started is None else cls(pid, started)

    def alive(self) -> bool:
        """Whether this very process still runs. A zombie does not."""
        return _started(self.pid) == self.started

    def signal(self, number: signal.Signals) -> bool:
        """Send a signal to this very process; False where it is gone."""
        if not self.alive():
            return False
        try:
            os.kill(self.pid, number)
        except ProcessLookupError:
            return False
        return True

    def wait(self, timeout_s: float) -> bool:
        """Wait until it is gone; False where it still runs after the time."""
        deadline = time.monotonic() + timeout_s
        while self.alive():
            if time.monotonic() > deadline:
                return False
            time.sleep(POLL_S)
        return True


def _started(pid: int) -> str | None:
    return _started_linux(pid) if PROC.joinpath("self/stat").exists() else _started_elsewhere(pid)


def _started_linux(pid: int) -> str | None:
    try:
        stat = PROC.joinpath(str(pid), "stat").read_text(encoding="utf-8", errors="replace")
        boot = PROC.joinpath("sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return None
    # The second field is the command's name in parentheses, and may itself contain some.
    fields = stat.rpartition(")")[2].split()
    state, ticks_after_boot = fields[0], fields[19]
    return None if state in "ZX" else f"{boot}/{ticks_after_boot}"


def _started_elsewhere(pid: int) -> str | None:
    answer = subprocess.run(
        ["/bin/ps", "-o", "stat=,lstart=", "-p", str(pid)],
        capture_output=True,
        text=True,
        timeout=10,
        check=False,
    )
    state, _, started = answer.stdout.strip().partition(" ")
    return None if not started or state.startswith("Z") else started.strip()
