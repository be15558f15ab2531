"""A Spark driver as a process of its own, that can be killed, frozen and held at a failpoint.

To start one takes ten seconds and more, so a driver that survived its test is used by the next.
"""

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from contextlib import ExitStack, suppress
from pathlib import Path

from chaos.process import END_S, Guard, children, descendants, kill, temporary_files_in

QUERY = Path(__file__).with_name("query.py")
ROOT = Path(__file__).parents[2]  # this tree, also where another one is installed


class Driver:
    """A process that runs one query at a time."""

    def __init__(self, folder, python_path):
        self.failpoints = folder / f"driver-{uuid.uuid4().hex[:6]}"
        self.failpoints.mkdir(parents=True)
        self._log = self.failpoints.with_suffix(".log")
        self._result = None
        self._seen = set()
        self._python_path = str(python_path)
        with self._log.open("wb") as output:
            self._process = self._start(output)
        self.pid = self._process.pid

    def _start(self, output):
        return subprocess.Popen(
            [sys.executable, str(QUERY)],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            env=os.environ
            | {
                "PYTHONPATH": self._python_path,
                "PYSPARK_PYTHON": sys.executable,
                "SPARK_EOS_FAILPOINTS": str(self.failpoints),
            }
            | temporary_files_in(self.failpoints.parent),
            start_new_session=True,
        )

    @property
    def is_idle(self):
        return self._process.poll() is None and (self._result is None or self._result.exists())

    def run(self, settings):
        """Start a query; the failpoints of the query before are forgotten."""
        for path in self.failpoints.iterdir():
            path.unlink()
        self._result = self.failpoints.parent / f"result-{uuid.uuid4().hex}.json"
        if settings["stop_when"] is not None:
            settings["stop_when"] = str(self.failpoints / f"{settings['stop_when']}.reached")
        for name in settings.pop("arm"):
            self.arm(name)
        line = json.dumps(settings | {"result": str(self._result)})
        self._process.stdin.write(line.encode() + b"\n")
        self._process.stdin.flush()

    def arm(self, name):
        for suffix in ("go", "reached"):
            (self.failpoints / f"{name}.{suffix}").unlink(missing_ok=True)
        (self.failpoints / f"{name}.armed").touch()

    def wait_for(self, name, timeout=90):
        """Wait until a process is held at the failpoint; returns its process id."""
        reached = self.failpoints / f"{name}.reached"
        self._wait(reached.exists, timeout, f"'{name}' was not reached")
        return int(reached.read_text())

    def go(self, name):
        (self.failpoints / f"{name}.go").touch()

    @property
    def log_text(self):
        """All that the driver and its workers have written to stdout and stderr."""
        return self._log.read_text(errors="replace")

    def finish(self, timeout=120):
        """Wait for a good end of the query."""
        outcome = self.outcome(timeout)
        assert outcome["ok"], outcome["text"][:6000]

    def fail(self, expected="", timeout=120):
        """Wait for a bad end of the query, with this error; returns all that was said."""
        outcome = self.outcome(timeout)
        assert not outcome["ok"], "ended well, and should not have"
        assert expected in outcome["text"], outcome["text"][:6000]
        return outcome["text"]

    def signal(self, number):
        """To the program and its JVM: what an operator calls the driver."""
        own = self._process.pid
        for pid in [own, *(pid for pid, name in children(own).items() if name == "java")]:
            os.kill(pid, number)

    def kill(self):
        """SIGKILL of the driver alone. Its Python workers find out by themselves."""
        self._seen |= descendants(self._process.pid)
        self.signal(signal.SIGKILL)
        self._process.wait(END_S)

    def close(self):
        """End every process that was ever seen below this driver."""
        self._seen |= descendants(self._process.pid)
        if self._process.poll() is None:
            self._process.kill()
        kill(self._seen)
        self._process.wait(END_S)
        with suppress(BrokenPipeError):
            self._process.stdin.close()

    def outcome(self, timeout=120):
        """Wait for the end of the query: whether it was good, and what was said."""
        self._wait(self._result.exists, timeout, "the query did not end")
        return json.loads(self._result.read_text())

    def _wait(self, condition, timeout, what):
        deadline = time.monotonic() + timeout
        while not condition():
            tail = self.log_text[-4000:]
            assert self._process.poll() is None, f"{what}: the driver ended\n{tail}"
            assert time.monotonic() < deadline, f"{what} within {timeout} s\n{tail}"
            if self._result is not None and self._result.exists() and not condition():
                raise AssertionError(f"{what}: {self._result.read_text()[:6000]}")
            time.sleep(0.02)


class Drivers:
    """Those that live, for the tests of one run."""

    def __init__(self, folder, python_path=ROOT):
        self._folder = folder
        self._python_path = python_path
        self._guard = Guard()
        self._all = []
        self._idle = []

    def take(self):
        if self._idle:
            return self._idle.pop()
        driver = Driver(self._folder, self._python_path)
        self._all.append(driver)
        self._guard.watch(driver.pid)
        return driver

    def give_back(self, driver):
        """To the next test, if it is in good order; a test that failed may leave it busy."""
        if driver.is_idle:
            self._idle.append(driver)
        else:
            driver.close()

    def close(self):
        """End all of them, also where one makes trouble."""
        with ExitStack() as stack:
            stack.callback(self._guard.close)
            for driver in self._all:
                stack.callback(driver.close)
