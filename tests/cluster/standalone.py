"""A Spark cluster of real processes on loopback: a master, and workers that have no Python.

A worker sees Java, a shell and its tools, and nothing of the environment of whoever started it.
So what an executor runs on is what the application brought along. Nothing here looks for a process
by its name: all are found below those that were started here. These end with the program that
wanted them, even if it was killed, by the supervisor of the embedded broker.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from contextlib import ExitStack, suppress
from pathlib import Path

import pyspark

from chaos.process import children, descendants, kill
from spark_eos.testing._embedded import supervisor as supervisor_script
from spark_eos.testing._embedded.java import java_command

SPARK_HOME = Path(pyspark.__file__).parent
SUPERVISOR = supervisor_script.__file__
# What `spark-class` calls, and what Spark unpacks an archive with. No Python, that is the point.
TOOLS = ("bash", "chmod", "dirname", "env", "gzip", "head", "sh", "tar")
JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
START_TIMEOUT_S = 60.0


class StandaloneCluster:
    """One master and `size` workers, each with one core and one gibibyte, each on a host of its
    own: Spark does not start a speculative copy of a task on the host of the first one.
    """

    def __init__(self, folder, size=2):
        self.folder = folder
        self.master_url = None
        self.workers = []
        self._size = size
        self._supervised = {}
        self._seen = set()

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_):
        self.stop()

    def start(self):
        self._make_path()
        self._spawn("master", "127.0.0.1", "master.Master")
        self.master_url = self._wait_for("master", r"Starting Spark master at (spark://\S+)")
        for number in range(self._size):
            name = f"worker-{number}"
            options = ["--cores", "1", "--memory", "1g", "--work-dir", str(self.folder / name)]
            host = f"127.0.0.{2 + number}"
            self.workers.append(self._spawn(name, host, "worker.Worker", *options, self.master_url))
        for number in range(self._size):
            self._wait_for(f"worker-{number}", r"(Successfully registered with master)")

    def stop(self):
        """End all, and remove what was unpacked: half a gigabyte for each executor there was."""
        for pid in self._supervised:
            # Held still, so that none starts an executor behind our back.
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)
        for pid in self._supervised:
            self._seen |= descendants(pid)
        with ExitStack() as steps:  # the last one first, and each of them, whatever another does
            for name in ("local", *(f"worker-{number}" for number in range(self._size))):
                steps.callback(shutil.rmtree, self.folder / name, ignore_errors=True)
            steps.callback(kill, self._seen)
            for supervisor in self._supervised.values():
                steps.callback(supervisor.communicate, timeout=10)

    def executors(self):
        """The process ids of the executors that run now, in the order of their workers."""
        return [
            pid
            for worker in self.workers
            for pid in children(worker)
            if b"CoarseGrainedExecutorBackend" in _command_line(pid)
        ]

    def python_workers(self, executor):
        """The Python workers of an executor: it starts one daemon, which forks them."""
        return [worker for daemon in children(executor) for worker in children(daemon)]

    def executor_of(self, python_worker):
        """The executor for which a Python worker works."""
        found = [pid for pid in self.executors() if python_worker in self.python_workers(pid)]
        assert len(found) == 1, f"{python_worker} is below {found} of {self.executors()}"
        return found[0]

    def kill(self, executor):
        """SIGKILL of an executor alone. Its Python workers find out by themselves."""
        self._seen |= descendants(executor)
        os.kill(executor, signal.SIGKILL)

    def wait_for_executors(self, without=(), timeout=60):
        """Wait until each worker has one, other than these."""
        deadline = time.monotonic() + timeout
        while len(found := set(self.executors()) - set(without)) < self._size:
            assert time.monotonic() < deadline, f"only {found} run after {timeout} s"
            time.sleep(0.1)
        return found

    def _make_path(self):
        (self.folder / "bin").mkdir()
        (self.folder / "bin" / "java").symlink_to(java_command())
        for tool in TOOLS:
            (self.folder / "bin" / tool).symlink_to(shutil.which(tool))

    def _spawn(self, name, host, daemon, *options):
        environment = {
            "PATH": str(self.folder / "bin"),
            "SPARK_HOME": str(SPARK_HOME),
            "SPARK_LOCAL_IP": host,
            "SPARK_LOCAL_DIRS": str(self.folder / "local"),
            "SPARK_DAEMON_MEMORY": "256m",
            # The master's second port would be a fixed one.
            "SPARK_DAEMON_JAVA_OPTS": f"{JAVA_OPTIONS} -Dspark.master.rest.enabled=false"
            f" -Djava.io.tmpdir={self.folder}",
        }
        command = [SPARK_HOME / "bin" / "spark-class", f"org.apache.spark.deploy.{daemon}"]
        command += ["--host", host, "--port", "0", "--webui-port", "0", *options]
        with self._log(name).open("wb") as output:
            supervisor = subprocess.Popen(
                [sys.executable, "-I", "-S", SUPERVISOR, str(os.getpid()), *command],
                cwd=self.folder,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                start_new_session=True,
            )
        pid = int(supervisor.stdout.readline())
        self._supervised[pid] = supervisor
        return pid

    def _log(self, name):
        return self.folder / f"{name}.log"

    def _wait_for(self, name, pattern):
        deadline = time.monotonic() + START_TIMEOUT_S
        while (found := re.search(pattern, self._log(name).read_text(errors="replace"))) is None:
            text = self._log(name).read_text(errors="replace")[-4000:]
            assert time.monotonic() < deadline, f"{name} did not start\n{text}"
            time.sleep(0.05)
        return found[1]


def _command_line(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
