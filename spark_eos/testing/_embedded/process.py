"""Test process. Processes, each named by its pid and its start.

The kernel reuses pids. An old pid file must never lead to a signal for another process.
"""

import os
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Self

PROC = Path("/proc")
POLL_S = 0.02


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """The pid and the start of a process. `started` is only compared, never read as a time."""

    pid: int
    started: str

    @classmethod
    def of(cls, pid: int) -> Self | None:
        """The identity of the live process with this pid, or None."""
        started = _started(pid)
        return None if started is None else cls(pid, started)

    def alive(self) -> bool:
        """Whether this process still runs. A zombie counts as ended."""
        return _started(self.pid) == self.started

    def signal(self, number: signal.Signals) -> bool:
        """Send a signal to this process. Return False if the process has ended."""
        if not self.alive():
            return False
        try:
            os.kill(self.pid, number)
        except ProcessLookupError:
            return False
        return True

    def wait(self, timeout_s: float) -> bool:
        """Wait until the process has ended. Return False if it still runs after the time."""
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
    # The second field is the command's name in parentheses, and may contain parentheses.
    fields = stat.rpartition(")")[2].split()
    state, ticks_after_boot = fields[0], fields[19]
    return None if state in "ZX" else f"{boot}/{ticks_after_boot}"


def _started_elsewhere(pid: int) -> str | None:
    command = ["/bin/ps", "-o", "stat=,lstart=", "-p", str(pid)]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    state, _, started = answer.stdout.strip().partition(" ")
    return None if not started or state.startswith("Z") else started.strip()
