"""Starts the driver, and starts it again whenever it ends: what a service manager would do.

A driver is a program and its JVM. Executors are children of the JVM (local-cluster), Python workers
are below both. Everything that was ever seen below a driver is ended when the run ends, by its
process id and start time.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

from tests.chaos.process import children, descendants, kill, temporary_files_in

QUERY = Path(__file__).with_name("query.py")
ROOT = Path(__file__).parents[3]
EXECUTOR = b"CoarseGrainedExecutorBackend"
POLL_S = 0.1
LOOK_EVERY_S = 1.0
RESTART_AFTER_S = 0.3


class Driver:
    """One life of the driver."""

    def __init__(self, number, folder, settings):
        self.number = number
        self.folder = folder / f"driver-{number:03}"
        self.failpoints = self.folder / "failpoints"
        self.failpoints.mkdir(parents=True)
        self.result = self.folder / "result.json"
        self.seen = set()
        self._looked = 0.0
        self._stop = self.folder / "stop"
        settings = settings | {
            "result": str(self.result),
            "stop": [settings["stop"], str(self._stop)],
        }
        with (self.folder / "log").open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, str(QUERY), json.dumps(settings)],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                env=os.environ
                | {
                    # The tree that this file is in, also where another one is installed.
                    "PYTHONPATH": str(ROOT),
                    "PYSPARK_PYTHON": settings["python"],
                    "SPARK_EOS_FAILPOINTS": str(self.failpoints),
                    "SPARK_LOCAL_IP": "127.0.0.1",
                    "SPARK_LOCAL_HOSTNAME": "127.0.0.1",
                    "SPARK_HOME": str(spark_home(folder)),
                }
                | temporary_files_in(self.folder),
                start_new_session=True,
            )
        self.pid = self._process.pid

    def ended(self):
        """Whether it is over. Now and then it looks at the processes below, on the way."""
        if time.monotonic() - self._looked > LOOK_EVERY_S:
            self.seen |= descendants(self.pid)
            self._looked = time.monotonic()
        return self._process.poll() is not None

    def outcome(self):
        """(outcome, text): ended, failed with an error, or killed."""
        if self.result.exists():
            result = json.loads(self.result.read_text())
            return ("ended" if result["ok"] else "failed"), result["text"]
        return "killed", f"exit status {self._process.poll()}"

    def jvm(self):
        return next((pid for pid, name in children(self.pid).items() if name == "java"), None)

    def executors(self):
        jvm = self.jvm()
        return [] if jvm is None else [pid for pid in children(jvm) if _is_executor(pid)]

    def workers(self):
        """Python processes that work for the JVM or for an executor, and fork no others."""
        jvm = self.jvm()
        below = set() if jvm is None else {pid for pid, _ in descendants(jvm)}
        return sorted(pid for pid in below if _is_python(pid) and not children(pid))

    def signal(self, number, *, workers=False):
        """To the program and its JVM; with `workers` to all that is below it, as a host does."""
        below = descendants(self.pid)
        self.seen |= below
        jvm = self.jvm()
        chosen = {pid for pid, _ in below} if workers else {jvm} - {None}
        for pid in (self.pid, *chosen):
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def stop(self):
        """Ask it to stop its query and to end."""
        self._stop.touch()

    def kill(self):
        self.signal(signal.SIGKILL)
        self._process.wait(10)

    def close(self):
        """End every process that was ever seen below it."""
        self.seen |= descendants(self.pid)
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait(10)
        kill(self.seen)
        with suppress(BrokenPipeError):
            self._process.stdin.close()


class Supervisor:
    """One driver at a time, and the old ones that were given up."""

    def __init__(self, folder, settings, history):
        self._folder = folder
        self._settings = settings
        self._history = history
        self._all = []
        self._lock = threading.RLock()
        self._down_until = 0.0
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="supervisor", daemon=True)
        self.driver = None
        self.failures = []
        self._watched = []

    def start(self):
        self._start_driver()
        self._thread.start()

    def hold_down(self, seconds):
        """No new driver for a while."""
        self._down_until = time.monotonic() + seconds

    def replace(self):
        """Start a new driver beside the one that runs, as a manager does that lost sight of it."""
        with self._lock:
            self._start_driver()

    def stop(self, timeout=60):
        """Let the driver end in order; True where it did."""
        self._stopping.set()
        Path(self._settings["stop"]).touch()
        deadline = time.monotonic() + timeout
        while self._watched and time.monotonic() < deadline:
            time.sleep(POLL_S)
        return not self._watched

    def close(self):
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(10)
        for driver in self._all:
            driver.close()

    def _start_driver(self):
        driver = Driver(len(self._all) + 1, self._folder, self._settings)
        self._all.append(driver)
        self._watched.append(driver)
        self.driver = driver
        self._history.add("driver", phase="start", number=driver.number, pid=driver.pid)

    def _watch(self):
        while not (self._stopping.is_set() and not self._watched):
            with self._lock:
                for driver in list(self._watched):
                    if driver.ended():
                        self._bury(driver)
                if self.driver not in self._watched and self._may_start():
                    self._start_driver()
            time.sleep(POLL_S)

    def _may_start(self):
        return not self._stopping.is_set() and time.monotonic() >= self._down_until

    def _bury(self, driver):
        outcome, text = driver.outcome()
        self._watched.remove(driver)
        if outcome == "failed":
            self.failures.append(text)
        self._history.add(
            "driver", phase="end", number=driver.number, pid=driver.pid, outcome=outcome, text=text
        )
        if driver is self.driver:
            self._down_until = max(self._down_until, time.monotonic() + RESTART_AFTER_S)


def spark_home(folder):
    """Spark as it is installed, by links: local-cluster keeps its executors' files in its home."""
    import pyspark

    home = folder / "spark-home"
    if not home.exists():
        home.mkdir(parents=True)
        for entry in Path(pyspark.__file__).parent.iterdir():
            if entry.name != "work":
                (home / entry.name).symlink_to(entry)
    return home


def _is_executor(pid):
    with suppress(OSError):
        return EXECUTOR in Path(f"/proc/{pid}/cmdline").read_bytes()
    return False


def _is_python(pid):
    with suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text().startswith("python")
    return False
