"""`make bench-read`: this source against Spark's own Kafka source, in turns, in one session.

Each ratio compares records per second, this source over Spark's: higher is better. Both read 2 M
committed records of 100 bytes from 4 partitions. `batch_read_vs_jvm` is one batch read, and
`stream_read_vs_jvm` a stream in micro-batches of 1 M. `small_batches_vs_jvm` has batches of 100,000
and no bound, because Spark's start of Python tasks costs more than the read. The memory of the
largest Python worker must not depend on the number of records.
"""

import argparse
import json
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import SparkSession

from benchmarks.quick import compared, in_turns, new_session
from spark_eos.testing import EmbeddedKafka

FOLDER = Path("build/bench-read")
REPORT = Path("build/bench-read.json")
PARTITIONS = 4
TOPIC = "records"
FORMATS = {"jvm": "kafka", "txnkafka": "txnkafka"}
LEAST = {"batch_read_vs_jvm": 1.3, "stream_read_vs_jvm": 1.3, "small_batches_vs_jvm": 0.0}
WORKER_MB = 400


def main() -> int:
    """Measure, print a table, write the report. Return 1 if a bound is broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    with EmbeddedKafka(FOLDER / "kafka") as kafka:
        fill(kafka.bootstrap_servers, arguments.records)
        spark = new_session()
        try:
            figures = measure(spark, kafka.bootstrap_servers, arguments.records, arguments.rounds)
        finally:
            spark.stop()
    shutil.rmtree(FOLDER, ignore_errors=True)
    REPORT.write_text(json.dumps(figures, indent=2) + "\n")
    return report(figures)


def fill(servers: str, records: int) -> None:
    """Write numbered records with a plain producer."""
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([NewTopic(TOPIC, PARTITIONS)])[TOPIC].result(30)
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 20, "batch.size": 500_000})
    for number in range(records):
        value = f"{number}".ljust(92, "x")
        while True:
            try:
                producer.produce(TOPIC, value, f"{number:08}", partition=number % PARTITIONS)
                break
            except BufferError:
                producer.poll(0.05)
    producer.flush()


def measure(spark: SparkSession, servers: str, records: int, rounds: int) -> dict[str, Any]:
    """All kinds of reads, the two sources in turns."""
    kinds: dict[str, Callable[[str], float]] = {
        "batch_read": lambda source: batch(spark, servers, source, records),
        "stream_read": lambda source: stream(spark, servers, source, records, 1_000_000),
        "small_batches": lambda source: stream(spark, servers, source, records, 100_000),
    }
    raw = {
        name: in_turns(rounds, lambda source, run=run: [run(source)]) for name, run in kinds.items()
    }
    return {**compared(raw), "worker_mb": largest_worker_mb()}


def options(servers: str) -> dict[str, str]:
    """The options of both sources."""
    return {
        "kafka.bootstrap.servers": servers,
        "subscribe": TOPIC,
        "startingOffsets": "earliest",
        "kafka.isolation.level": "read_committed",
    }


def batch(spark: SparkSession, servers: str, source: str, records: int) -> float:
    """The records per second of one batch read of all records."""
    started = time.monotonic()
    rows = spark.read.format(FORMATS[source]).options(**options(servers)).load()
    rows.write.format("noop").mode("overwrite").save()
    return records / (time.monotonic() - started)


def stream(spark: SparkSession, servers: str, source: str, records: int, most: int) -> float:
    """The records per second of the triggers that read records."""
    reader = spark.readStream.format(FORMATS[source]).options(**options(servers))
    writer = reader.option("maxOffsetsPerTrigger", most).load().writeStream.format("noop")
    writer = writer.option("checkpointLocation", str(FOLDER / f"checkpoint-{time.time_ns()}"))
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    read = [p for p in query.recentProgress if p["numInputRows"] > 0]
    if sum(p["numInputRows"] for p in read) != records:
        raise SystemExit(f"{source}: {sum(p['numInputRows'] for p in read)} of {records} rows")
    return records / (sum(p["durationMs"]["triggerExecution"] for p in read) / 1000)


def largest_worker_mb() -> float:
    """The peak memory of the largest Python worker."""
    peaks = [0.0]
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            if b"pyspark.daemon" in (folder / "cmdline").read_bytes():
                status = dict(line.split(":", 1) for line in (folder / "status").open())
                peaks.append(int(status["VmHWM"].split()[0]) / 1024)
        except (OSError, KeyError):  # the process has just ended
            continue
    return max(peaks)


def report(figures: dict[str, Any]) -> int:
    """Print the table. Return 1 if a bound is broken."""
    broken = 0
    print(f"{'records/s':22}{'jvm':>12}{'txnkafka':>12}{'ratio':>8}  bound")
    for name, least in LEAST.items():
        medians, ratio = figures["medians"][name.removesuffix("_vs_jvm")], figures[name]
        broken += ratio < least
        bound = f">= {least} {'ok' if ratio >= least else 'BROKEN'}" if least else ""
        print(
            f"{name:22}{medians['jvm']:>12,.0f}{medians['txnkafka']:>12,.0f}{ratio:>8.2f}  {bound}"
        )
    worker_mb = figures["worker_mb"]
    broken += worker_mb > WORKER_MB
    print(
        f"{'largest worker, MB':22}{worker_mb:>32,.0f}  <= {WORKER_MB}"
        f" {'ok' if worker_mb <= WORKER_MB else 'BROKEN'}"
    )
    print(f"written to {REPORT}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
