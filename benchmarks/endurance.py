"""`make bench-endurance`: whether a query grows over 10,000 micro-batches.

The query reads a topic, writes another and moves a group, with one task and two rows a micro-batch.
So each batch takes every step. After every 500 batches, when all caches are warm, /proc gives the
resident memory, open files and threads of the driver's Python, its JVM and each Python worker. The
first quarter of the looks is compared with the last. At the end a plain read_committed consumer
counts the rows, and the group must be at their end.

    python -m benchmarks.endurance --batches 10000
"""

import argparse
import json
import os
import shutil
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from statistics import median

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import SparkSession

from spark_eos.testing import EmbeddedKafka

FOLDER = Path("build/endurance")
REPORT = Path("build/endurance.json")
LOOK_EVERY = 500
ROWS_PER_BATCH = 2
# The query runs a few more batches before it stops.
BATCHES_MORE = 200
INPUT, OUTPUT, GROUP = "rows", "rows-again", "endurance"
COUNT_TIMEOUT_S = 120

# The bounds of growth from the first quarter of the looks to the last. A JVM fills its heap, so its
# memory has no bound.
MOST_MORE_MB = 40
MOST_MORE = 10


@dataclass(frozen=True, slots=True)
class Use:
    """What a process uses."""

    rss_mb: int
    files: int
    threads: int


@dataclass(frozen=True, slots=True)
class Look:
    """All processes of the query after a batch."""

    batch: int
    seconds: float
    driver: Use
    jvm: Use
    workers: dict[str, Use]  # by module and process id


def use(pid: int) -> Use | None:
    """What a process uses now, or None for an ended process or a zombie."""
    with suppress(FileNotFoundError, ProcessLookupError, KeyError):
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        status = dict(line.split(":", 1) for line in lines)
        return Use(
            rss_mb=int(status["VmRSS"].split()[0]) // 1024,
            files=len(list(Path(f"/proc/{pid}/fd").iterdir())),
            threads=int(status["Threads"]),
        )
    return None


def below(pid: int) -> Iterator[int]:
    """Every process below another, except one that ends during the search."""
    with suppress(FileNotFoundError, ProcessLookupError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                yield int(child)
                yield from below(int(child))


def look(batch: int, seconds: float) -> Look:
    """Look at every process of this query."""
    jvm = next(pid for pid in below(os.getpid()) if "SparkSubmit" in _command(pid))
    workers = {
        f"{_command(pid).rstrip(chr(0)).rpartition('.')[2]} {pid}": found
        for pid in below(jvm)
        if (found := use(pid)) is not None
    }
    driver, java = use(os.getpid()), use(jvm)
    if driver is None or java is None:
        raise SystemExit("the query's JVM ended")
    return Look(batch=batch, seconds=round(seconds, 1), driver=driver, jvm=java, workers=workers)


def _command(pid: int) -> str:
    with suppress(FileNotFoundError, ProcessLookupError):
        return Path(f"/proc/{pid}/cmdline").read_text()
    return ""


def fill(bootstrap_servers: str, rows: int) -> None:
    """Write the input of a run."""
    producer = Producer({"bootstrap.servers": bootstrap_servers})
    for value in range(rows):
        producer.produce(INPUT, str(value))
        producer.poll(0)
    if producer.flush(60):
        raise SystemExit("the input could not be written")


def run(spark: SparkSession, bootstrap_servers: str, batches: int) -> list[Look]:
    """Run the query for this number of batches."""
    servers = {"kafka.bootstrap.servers": bootstrap_servers}
    source = {"subscribe": INPUT, "startingOffsets": "earliest"}
    sink = {"topic": OUTPUT, "group.id": GROUP, "checkpointLocation": str(FOLDER / "checkpoint")}
    reader = spark.readStream.format("txnkafka").options(**servers, **source)
    rows = reader.option("maxOffsetsPerTrigger", ROWS_PER_BATCH).load().select("value")
    query = rows.writeStream.format("txnkafka").options(**servers, **sink).start()
    looks: list[Look] = []
    started = time.monotonic()
    while True:
        if query.awaitTermination(1):
            raise SystemExit("the query ended")
        done = (query.lastProgress or {"batchId": 0})["batchId"]
        if done >= LOOK_EVERY * (len(looks) + 1):
            looks.append(look(done, time.monotonic() - started))
            print(looks[-1], flush=True)
        if done >= batches:
            query.stop()
            return looks


def wrong_rows(bootstrap_servers: str, batches: int) -> tuple[int, int]:
    """The number of rows, and of the lost or doubled ones, as a plain consumer sees them.

    Expected is the input below the group's offset. The group may be after the counted batches.
    """
    settings = {"enable.auto.commit": False, "enable.partition.eof": True}
    consumer = Consumer({"bootstrap.servers": bootstrap_servers, "group.id": GROUP, **settings})
    (group,) = consumer.committed([TopicPartition(INPUT, 0)], timeout=20)
    end = max(ROWS_PER_BATCH * batches, group.offset)
    wanted = Counter(value for offset, value in read(consumer, INPUT) if offset < end)
    seen = Counter(value for _, value in read(consumer, OUTPUT))
    consumer.close()
    behind = end - group.offset
    return seen.total(), (wanted - seen).total() + (seen - wanted).total() + behind


def read(consumer: Consumer, topic: str) -> Iterator[tuple[int, bytes]]:
    """The offset and the value of each existing record."""
    partitions = consumer.list_topics(topic, timeout=20).topics[topic].partitions
    consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
    ended: set[int | None] = set()
    deadline = time.monotonic() + COUNT_TIMEOUT_S
    while len(ended) < len(partitions):
        if time.monotonic() > deadline:
            raise SystemExit(f"the rows were not read to their end in {COUNT_TIMEOUT_S} s")
        for message in consumer.consume(5000, timeout=0.5):
            error = message.error()
            if error is None:
                yield message.offset() or 0, message.value() or b""
            elif error.code() == KafkaError._PARTITION_EOF:
                ended.add(message.partition())
            else:
                raise SystemExit(f"the rows cannot be counted: {error}")


def usual(uses: list[Use]) -> Use:
    """The median of each figure, because a look may coincide with maintenance of the log."""
    return Use(*(int(median(getattr(use, figure.name) for use in uses)) for figure in fields(Use)))


def processes(looks: list[Look]) -> dict[str, list[Use]]:
    """What each process used, look by look."""
    found = {"driver": [one.driver for one in looks], "jvm": [one.jvm for one in looks]}
    for one in looks:
        for name, held in one.workers.items():
            found.setdefault(name, []).append(held)
    return found


def grown(looks: list[Look]) -> list[str]:
    """What grew from the first quarter of a run to its last."""
    quarter = max(1, len(looks) // 4)
    early, late = processes(looks[:quarter]), processes(looks[-quarter:])
    stayed = sorted(early.keys() & late)
    found = [] if stayed != ["driver", "jvm"] else ["no worker stayed"]
    for name in stayed:
        before, after = usual(early[name]), usual(late[name])
        print(f"{name}: {before} in the first {quarter} looks, {after} in the last")
        if name != "jvm" and after.rss_mb > before.rss_mb + MOST_MORE_MB:
            found.append(f"{name}: memory {before.rss_mb} to {after.rss_mb} MB")
        for kind in ("files", "threads"):
            # The size of a thread pool depends on the peak load so far.
            most = max(getattr(held, kind) for held in early[name])
            if getattr(after, kind) > most + MOST_MORE:
                found.append(f"{name}: {kind} {most} to {getattr(after, kind)}")
    if len(looks[-1].workers) > len(looks[0].workers) + MOST_MORE:
        found.append(f"workers: {len(looks[0].workers)} to {len(looks[-1].workers)}")
    return found


def main() -> int:
    """Run the query, count the rows, and compare the looks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batches", type=int, default=10_000)
    batches = parser.parse_args().batches
    shutil.rmtree(FOLDER, ignore_errors=True)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    with EmbeddedKafka(FOLDER / "kafka") as kafka:
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
        for created in admin.create_topics([NewTopic(INPUT, 1), NewTopic(OUTPUT, 2)]).values():
            created.result(30)
        fill(kafka.bootstrap_servers, ROWS_PER_BATCH * (batches + BATCHES_MORE))
        builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
        for name in ("spark.driver.host", "spark.driver.bindAddress"):
            builder = builder.config(name, "127.0.0.1")
        spark = builder.getOrCreate()
        spark.sparkContext.setLogLevel("ERROR")
        looks = run(spark, kafka.bootstrap_servers, batches)
        spark.stop()
        rows, wrong = wrong_rows(kafka.bootstrap_servers, batches)
    problems = grown(looks)
    if wrong:
        problems.append(f"{wrong} rows lost, doubled, or not where the group is")
    report = {"rows": rows, "problems": problems, "looks": [asdict(one) for one in looks]}
    REPORT.write_text(json.dumps(report, indent=2))
    print(f"{rows} rows in {looks[-1].batch} batches, problems: {problems or 'none'}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
