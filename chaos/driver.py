"""The driver: a program and its JVM, and all that is below them.

Executors are children of the JVM (local-cluster), Python workers are below both. All that was ever
seen below a driver is ended with it, by its process id and start time.
"""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from chaos.process import END_S, children, descendants, kill, temporary_files_in

QUERY = Path(__file__).with_name("query.py")
ROOT = Path(__file__).parents[1]
EXECUTOR = b"CoarseGrainedExecutorBackend"
UNASKED = "and nobody had asked it to"
LOOK_EVERY_S = 1.0


class Driver:
    """One life of the driver."""

    def __init__(self, number, folder, settings):
        self.number = number
        self.folder = folder / f"driver-{number:03}"
        self.failpoints = self.folder / "failpoints"
        self.failpoints.mkdir(parents=True)
        self.result = self.folder / "result.json"
        self.seen = set()
        self.started_at = time.monotonic()
        self._asked = False  # to end, in order or at once
        self._looked = 0.0
        self._stop = self.folder / "stop"
        settings = settings | {"result": str(self.result), "stop": str(self._stop)}
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

    @property
    def runs(self):
        return self._process.poll() is None

    def ended(self):
        """Whether it is over. Now and then it looks at the processes below, on the way."""
        if time.monotonic() - self._looked > LOOK_EVERY_S:
            self.seen |= descendants(self.pid)
            self._looked = time.monotonic()
        return not self.runs

    def outcome(self):
        """(outcome, text): ended or killed as it was asked to, or failed."""
        if self.result.exists():
            result = json.loads(self.result.read_text())
            if not result["ok"]:
                return "failed", result["text"]
            return ("ended", "") if self._asked else ("failed", f"the query ended, {UNASKED}")
        status = f"exit status {self._process.poll()}"
        return ("killed", status) if self._asked else ("failed", f"{status}, {UNASKED}")

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
        self._asked |= number == signal.SIGKILL
        below = descendants(self.pid)
        self.seen |= below
        jvm = self.jvm()
        chosen = {pid for pid, _ in below} if workers else {jvm} - {None}
        for pid in (self.pid, *chosen):
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def stop(self):
        """Ask it to stop its query and to end."""
        self._asked = True
        self._stop.touch()

    def kill(self):
        self.signal(signal.SIGKILL)
        self._process.wait(END_S)

    def close(self):
        """End every process that was ever seen below it."""
        self._asked = True
        self.seen |= descendants(self.pid)
        if self.runs:
            self._process.kill()
        kill(self.seen)
        self._process.wait(END_S)
        with suppress(BrokenPipeError):
            self._process.stdin.close()


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
