"""`make demo`: a real broker, a real job, a SIGKILL at the worst moment, and a count at the end."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from demo.check import count_orders, verdict
from demo.picture import draw, read_batches
from spark_eos.testing import EmbeddedKafka

FOLDER = Path("build/demo")
ORDERS = 40_000
ORDERS_PER_BATCH = 5_000
KILL_IN_BATCH = 3


class Job:
    """The job as a process of its own, so that it can be killed."""

    def __init__(self, bootstrap_servers: str, log: Path) -> None:
        self._log = log
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                [
                    *[sys.executable, "-m", "demo.job", bootstrap_servers],
                    *[str(FOLDER / "checkpoint"), str(ORDERS_PER_BATCH)],
                ],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                env=os.environ
                | {
                    "PYSPARK_PYTHON": sys.executable,
                    "SPARK_EOS_FAILPOINTS": str((FOLDER / "failpoints").absolute()),
                    # A JVM that is killed leaves what it has unpacked.
                    "JDK_JAVA_OPTIONS": f'"-Djava.io.tmpdir={(FOLDER / "tmp").absolute()}"',
                },
                start_new_session=True,
            )

    def wait_for(self, path: Path, what: str, timeout_s: float = 120) -> None:
        """Wait for a file that the job, or Spark for it, writes."""
        deadline = time.monotonic() + timeout_s
        while not path.exists():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise SystemExit(f"the job did not come to this point: {what}; see {self._log}")
            time.sleep(0.02)

    def kill(self) -> None:
        """SIGKILL of the driver: the program and its JVM."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(30)

    def finish(self) -> None:
        """Wait for its good end."""
        if self._process.wait(300) != 0:
            raise SystemExit(f"the job failed; see {self._log}")


def main() -> int:
    """Run the demo; 0 if each order was invoiced exactly once."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    for name in ("failpoints", "tmp"):
        (FOLDER / name).mkdir(parents=True)
    say("Starting a real Kafka broker on this machine")
    with EmbeddedKafka(FOLDER / "kafka") as kafka:
        servers = kafka.bootstrap_servers
        say(f"  it listens on {servers}")
        say(f"Writing {ORDERS} orders to the topic 'orders'")
        fill(servers)
        killed, recovered = run_and_kill(servers)
        say("Reading both topics with a plain read_committed consumer")
        sent, seen = count_orders(servers, "orders"), count_orders(servers, "invoices")
    picture = FOLDER / "micro-batches.png"
    batches = read_batches(FOLDER / "checkpoint" / "transaction_state")
    draw(batches, killed, recovered, picture)
    say(f"  {len(batches)} micro-batches, one decision each; the picture is in {picture}")
    line, good = verdict(sent, seen)
    print(f"\n{line}", flush=True)
    return 0 if good else 1


def run_and_kill(servers: str) -> tuple[datetime, datetime]:
    """Run the job, kill it between decision and completion, run it again to its end."""
    log = FOLDER / "job.log"
    commits, points = FOLDER / "checkpoint" / "commits", FOLDER / "failpoints"
    say("Starting the job: orders -> invoices, one Kafka transaction per partition and batch")
    job = Job(servers, log)
    job.wait_for(commits / str(KILL_IN_BATCH - 1), "the first batches are written")
    (points / "decided.armed").touch()
    job.wait_for(points / "decided.reached", "a batch is decided")
    job.kill()
    killed = datetime.now(UTC)
    stuck = max(
        int(p.name) for p in (FOLDER / "checkpoint" / "offsets").iterdir() if p.name.isdigit()
    )
    visible = count_orders(servers, "invoices").total()
    say(f"Killed the driver with SIGKILL in batch {stuck}: decided in the log, not one of its")
    say(f"  transactions ended. Readers see {visible} invoices and wait")
    say("Starting the job again")
    job = Job(servers, log)
    job.wait_for(commits / str(stuck), "the decided batch is complete")
    recovered = datetime.now(UTC)
    say(f"  it found the decision and completed batch {stuck} without writing it again")
    job.finish()
    return killed, recovered


def fill(servers: str) -> None:
    """Make the topics and the input."""
    admin = AdminClient({"bootstrap.servers": servers})
    for future in admin.create_topics([NewTopic("orders", 4), NewTopic("invoices", 4)]).values():
        future.result(30)
    # Its coordinator has just started: that it asks twice is no news for a newcomer.
    producer = Producer({"bootstrap.servers": servers, "enable.idempotence": True, "log_level": 3})
    for number in range(ORDERS):
        order = {"order": f"o-{number:06}", "price": round(5 + number % 997 / 10, 2)}
        producer.produce("orders", json.dumps(order), key=f"customer-{number % 500}")
        if number % 10_000 == 0:
            producer.poll(0)
    if producer.flush(60) != 0:
        raise SystemExit("the broker did not take all orders")


def say(line: str) -> None:
    """Tell the newcomer what happens."""
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
