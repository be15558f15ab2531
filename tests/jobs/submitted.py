"""A job as an operator runs it: spark-submit, a file, a signal, an exit code."""

import os
import re
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

from confluent_kafka import Producer

from chaos.process import Guard, descendants, kill, temporary_files_in
from spark_eos.testing._embedded.jars import delta_jars
from tests.chaos.oracle import committed_messages

ROOT = Path(__file__).parents[2]
# Half of a start is the compiler at work.
JAVA_OPTIONS = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Dlog4j2.configurationFile=conf/log4j2.properties"
)


class Local:
    """Where a job runs: here, driver and executor in one process."""

    folder = ROOT
    environment = os.environ | {
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
    }
    options = (
        "--properties-file",
        "conf/embedded/spark.conf",
        "--conf",
        f"spark.driver.extraJavaOptions={JAVA_OPTIONS}",
    )


class Submitted:
    """One run of a job, with all processes below it."""

    def __init__(self, place, job, file, environment, log, arguments=()):
        self.log = log
        self._seen = set()
        with log.open("ab") as output:
            self.process = subprocess.Popen(
                [
                    str(Path(sys.executable).with_name("spark-submit")),
                    *place.options,
                    "--jars",
                    ",".join(str(jar) for jar in delta_jars()),
                    str(ROOT / "jobs" / f"{job}.py"),
                    str(file),
                    *arguments,
                ],
                cwd=place.folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=place.environment | environment | temporary_files_in(log.parent),
                start_new_session=True,
            )

    def wait(self, timeout=300):
        """The exit code."""
        deadline = time.monotonic() + timeout
        while self.process.poll() is None:
            assert time.monotonic() < deadline, f"still running\n{self.text()}"
            self._seen |= descendants(self.process.pid)
            time.sleep(0.05)
        return self.process.returncode

    def wait_for(self, condition, timeout=300):
        deadline = time.monotonic() + timeout
        while not condition():
            assert self.process.poll() is None, f"ended\n{self.text()}"
            assert time.monotonic() < deadline, f"waited in vain\n{self.text()}"
            self._seen |= descendants(self.process.pid)
            time.sleep(0.1)

    def terminate(self):
        """As `kill <pid of spark-submit>`: the JVM gets it, and no other process."""
        os.kill(self.process.pid, signal.SIGTERM)

    def kill(self):
        """SIGKILL to the JVM; its Python goes with it, or is ended here."""
        self._seen |= descendants(self.process.pid)
        self.process.kill()
        self.process.wait(10)
        kill(self._seen)

    def text(self):
        return self.log.read_text(errors="replace")[-8000:]


class Jobs:
    """Files with the topics and folders of one test in them, and the runs of it."""

    def __init__(self, kafka, folder, place):
        self.bootstrap_servers = kafka.bootstrap_servers
        self.folder = folder
        self._place = place
        self._runs = []
        self._guard = Guard()

    def file(self, job, **replaced):
        """The file of conf/embedded with other words in it."""
        text = (ROOT / "conf" / "embedded" / f"{job}.yaml").read_text()
        for old, new in replaced.items():
            pattern = rf"(?<![\w.-]){re.escape(old.replace('__', '.'))}(?![\w-])"
            text, count = re.subn(pattern, new, text)
            assert count, f"{old} is not in the file"
        path = self.folder / f"{job}-{uuid.uuid4().hex[:6]}.yaml"
        path.write_text(text)
        return path

    def until_drained(self, path):
        """The same file, for a run that ends when all is read."""
        text, count = re.subn(r"processingTime: .*", "availableNow: true", path.read_text())
        assert count == 1
        path.write_text(text)
        return path

    def submit(self, job, file, *arguments, **environment):
        given = {
            "KAFKA_BOOTSTRAP_SERVERS": self.bootstrap_servers,
            "DATA": str(self.folder),
        }
        log = self.folder / f"{job}.log"
        run = Submitted(self._place, job, file, given | environment, log, arguments)
        self._runs.append(run)
        self._guard.watch(run.process.pid)
        return run

    def run(self, job, file, *arguments, expect=0, **environment):
        run = self.submit(job, file, *arguments, **environment)
        code = run.wait()
        assert code == expect, f"exit code {code}\n{run.text()}"
        return run

    def produce(self, topic, records):
        """Pairs of key and value, each a text, bytes or None."""
        producer = Producer({"bootstrap.servers": self.bootstrap_servers})
        for key, value, *timestamp in records:
            more = {"timestamp": timestamp[0]} if timestamp else {}
            producer.produce(topic, value, key, **more)
        assert producer.flush(20) == 0

    def records(self, topic):
        """What a read_committed consumer sees: (key, value, headers), in order of partition."""
        messages = committed_messages(self.bootstrap_servers, topic)
        return [(m.key(), m.value(), m.headers() or []) for _, m in sorted(messages.items())]

    def close(self):
        for run in self._runs:
            if run.process.poll() is None:
                run.kill()
        self._guard.close()
