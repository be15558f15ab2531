"""`make demo`: a real broker, a real job, a SIGKILL after the decision, and a count at the end."""

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
    """The job in its own process, so that it can be killed."""

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
                    # A killed JVM leaves its temporary files.
                    "JDK_JAVA_OPTIONS": f'"-Djava.io.tmpdir={(FOLDER / "tmp").absolute()}"',
                },
                start_new_session=True,
            )

    def wait_for(self, path: Path, what: str, timeout_s: float = 120) -> None:
        """Wait for a file that the job or Spark writes."""
        deadline = time.monotonic() + timeout_s
        while not path.exists():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise SystemExit(f"the job did not reach this point: {what}. See {self._log}")
            time.sleep(0.02)

    def kill(self) -> None:
        """Send SIGKILL to the driver: the program and its JVM."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(30)

    def finish(self) -> None:
        """Wait for the job's success."""
        if self._process.wait(300) != 0:
            raise SystemExit(f"the job failed. See {self._log}")


def main() -> int:
    """Run the demo. Return 0 if each order has exactly one invoice."""
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
    """Run the job, kill it between decision and completion, and run it again to its end."""
    log = FOLDER / "job.log"
    commits, points = FOLDER / "checkpoint" / "commits", FOLDER / "failpoints"
    say("Starting the job: orders -> invoices, one Kafka transaction per partition and batch")
    job = Job(servers, log)
    job.wait_for(commits / str(KILL_IN_BATCH - 1), "the first batches are written")
    (points / "decided.armed").touch()
    job.wait_for(points / "decided.reached", "a batch is decided")
    job.kill()
    killed = datetime.now(UTC)
    offsets = FOLDER / "checkpoint" / "offsets"
    stuck = max(int(path.name) for path in offsets.iterdir() if path.name.isdigit())
    visible = count_orders(servers, "invoices").total()
    say(f"Killed the driver with SIGKILL in batch {stuck}. The log has its decision, but all of")
    say(f"  its transactions are still open. Readers see {visible} invoices and wait")
    say("Starting the job again")
    job = Job(servers, log)
    job.wait_for(commits / str(stuck), "the decided batch is complete")
    recovered = datetime.now(UTC)
    say(f"  it found the decision and completed batch {stuck} without writing it again")
    job.finish()
    return killed, recovered


def fill(servers: str) -> None:
    """Create the topics and write the input."""
    admin = AdminClient({"bootstrap.servers": servers})
    for future in admin.create_topics([NewTopic("orders", 4), NewTopic("invoices", 4)]).values():
        future.result(30)
    # The coordinator has just started. The client's warning about a retry would only confuse.
    producer = Producer({"bootstrap.servers": servers, "enable.idempotence": True, "log_level": 3})
    for number in range(ORDERS):
        order = {"order": f"o-{number:06}", "price": round(5 + number % 997 / 10, 2)}
        producer.produce("orders", json.dumps(order), key=f"customer-{number % 500}")
        if number % 10_000 == 0:
            producer.poll(0)
    if producer.flush(60) != 0:
        raise SystemExit("the broker did not take all orders")


def say(line: str) -> None:
    """Print a line at once."""
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
