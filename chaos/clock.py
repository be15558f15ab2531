"""A wall clock for the query's Python workers alone, that can be set while they run.

A worker is started through a script that loads libfaketime, which reads a file for how far the
clock is off, once a second. The monotonic clock goes on: that one nobody can set on a real machine
either. Where the library does not work the fault is skipped, and says so.
"""

import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

LIBRARY = Path("vendor", "libfaketime", "src", "libfaketime.so.1")
SCRIPT = """#!/bin/sh
: > '{started}'/$$
export LD_PRELOAD='{library}' FAKETIME_TIMESTAMP_FILE='{file}'
export FAKETIME_CACHE_DURATION=1 FAKETIME_DONT_FAKE_MONOTONIC=1
exec '{python}' "$@"
"""
SHARED_MEMORY = Path("/dev/shm")
LEFT = ("faketime_shm_{pid}", "sem.faketime_sem_{pid}")
TRIAL_S = 100_000


class WallClock:
    """`python` is the interpreter whose clock it is."""

    def __init__(self, folder):
        folder.mkdir(parents=True, exist_ok=True)
        self._file = folder / "offset"
        self._started = folder / "started"
        self._started.mkdir(exist_ok=True)
        script = folder / "python"
        package = find_spec("libfaketime")
        library = Path(package.origin).parent / LIBRARY if package is not None else None
        script.write_text(
            SCRIPT.format(
                library=library,
                file=self._file,
                python=sys.executable,
                started=self._started,
            )
        )
        script.chmod(0o755)
        self.set(TRIAL_S)
        self.works = library is not None and library.exists() and _offset(script) > TRIAL_S / 2
        self.set(0)
        self.python = str(script) if self.works else sys.executable

    def set(self, seconds):
        """So far it is off, from now on."""
        part = self._file.with_suffix(".part")
        part.write_text(f"{seconds:+}\n")
        part.replace(self._file)  # in one step: it is read at any time

    def close(self):
        """Remove what the library shares with the children of a process, of those that are gone: a
        process that is killed leaves it.
        """
        for started in self._started.iterdir():
            if not Path("/proc", started.name).exists():
                for name in LEFT:
                    (SHARED_MEMORY / name.format(pid=started.name)).unlink(missing_ok=True)


def _offset(python):
    """How far its clock is off."""
    program = [python, "-c", "import time; print(time.time())"]
    told = subprocess.run(program, capture_output=True, text=True, check=False, timeout=120)
    return float(told.stdout) - time.time() if told.returncode == 0 else 0.0
