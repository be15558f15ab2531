"""A Spark driver as a process of its own, that can be killed, frozen and held at a failpoint."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

QUERY = Path(__file__).with_name("query.py")


class Driver:
    """One run of `query.py`. Whatever happens, `close` ends every process it started."""

    def __init__(self, folder, settings, name="driver"):
        self.failpoints = folder / "failpoints"
        self.failpoints.mkdir(parents=True, exist_ok=True)
        self._settings = settings
        self._output = folder / f"{name}.log"
        self._seen = set()
        self._process = None

    def start(self):
        environment = os.environ | {
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_EOS_FAILPOINTS": str(self.failpoints),
        }
        with self._output.open("ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, str(QUERY), json.dumps(self._settings)],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                env=environment,
                start_new_session=True,
            )
        return self

    @property
    def output(self):
        return self._output.read_text(errors="replace")

    def arm(self, name):
        for suffix in ("go", "reached"):
            (self.failpoints / f"{name}.{suffix}").unlink(missing_ok=True)
        (self.failpoints / f"{name}.armed").touch()

    def wait_for(self, name, timeout=60):
        """Wait until a process is held at the failpoint; returns its process id."""
        reached = self.failpoints / f"{name}.reached"
        deadline = time.monotonic() + timeout
        while not reached.exists():
            assert self._process.poll() is None, f"ended before '{name}':\n{self.output[-4000:]}"
            assert time.monotonic() < deadline, f"'{name}' not reached:\n{self.output[-4000:]}"
            time.sleep(0.02)
        self.remember()
        return int(reached.read_text())

    def go(self, name):
        (self.failpoints / f"{name}.go").touch()

    def wait(self, timeout=120):
        """Wait for the end; returns the exit status."""
        deadline = time.monotonic() + timeout
        while self._process.poll() is None:
            self.remember()
            if time.monotonic() > deadline:
                raise AssertionError(f"did not end within {timeout} s:\n{self.output[-6000:]}")
            time.sleep(0.05)
        return self._process.returncode

    def finish(self, timeout=120):
        """Wait for a good end."""
        status = self.wait(timeout)
        self.close()
        assert status == 0, self.output[-6000:]

    def fail(self, timeout=120):
        """Wait for a bad end; returns what was printed."""
        status = self.wait(timeout)
        self.close()
        assert status != 0, "ended well, and should not have"
        return self.output

    @property
    def pids(self):
        """The program and the JVM: what an operator calls the driver."""
        own = self._process.pid
        return [own, *(pid for pid, name in _children(own).items() if name == "java")]

    def signal(self, number):
        for pid in self.pids:
            os.kill(pid, number)

    def kill(self):
        """SIGKILL of the driver alone. Its Python workers find out by themselves."""
        self.remember()
        self.signal(signal.SIGKILL)
        self._process.wait(10)

    def remember(self):
        self._seen |= _descendants(self._process.pid)

    def close(self):
        if self._process is None:
            return
        with suppress(ProcessLookupError, FileNotFoundError):
            self.remember()
        for pid, started in self._seen:
            if _start_time(pid) == started:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait(10)
        self._process.stdin.close()

    def __enter__(self):
        return self.start()

    def __exit__(self, *exc):
        self.close()


def _start_time(pid):
    """Tells a process from a later one with the same id."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (FileNotFoundError, ProcessLookupError):
        return None


def _children(pid):
    found = {}
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(FileNotFoundError, ProcessLookupError):
            for child in task.read_text().split():
                with suppress(FileNotFoundError, ProcessLookupError):
                    found[int(child)] = Path(f"/proc/{child}/comm").read_text().strip()
    return found


def _descendants(pid):
    found = set()
    for child in _children(pid):
        found |= {(child, _start_time(child))} | _descendants(child)
    return found
