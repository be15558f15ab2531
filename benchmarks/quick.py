"""`make bench-quick`: this sink against Spark's own Kafka sink, in turns, in one session.

Each figure is a ratio of medians, this sink over Spark's. `batch_write_vs_jvm` compares records per
second of one large micro-batch (1 M records of 100 bytes): higher is better. `trigger_1_row_vs_jvm`
and `trigger_1000_rows_vs_jvm` compare the time of one trigger in 4 partitions: lower is better.
Spark's sink writes at least once, this sink exactly once.
"""

import argparse
import json
import os
import shutil
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import DataFrame, SparkSession

from spark_eos.testing import EmbeddedKafka
from spark_eos.testing._embedded.jars import peer_jars

FOLDER = Path("build/bench")
REPORT = Path("build/bench.json")
PARTITIONS = 4
SINKS = {"jvm": "kafka", "txnkafka": "txnkafka"}
BOUNDS = {
    "batch_write_vs_jvm": (0.8, None),
    "trigger_1_row_vs_jvm": (None, 3.0),
    "trigger_1000_rows_vs_jvm": (None, 3.0),
}


@dataclass(frozen=True, slots=True)
class Bench:
    """One session and one broker for all measurements."""

    spark: SparkSession
    bootstrap_servers: str

    def new_topic(self, name: str) -> str:
        """A new topic for each run, so that no run inherits segments."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap_servers})
        topic = f"{name}-{time.time_ns()}"
        admin.create_topics([NewTopic(topic, PARTITIONS)])[topic].result(30)
        return topic

    def start(self, rows: DataFrame, sink: str, trigger: dict[str, Any]) -> Any:
        """Start a query that writes `rows` with one of the two sinks."""
        topic = self.new_topic(sink)
        options = {
            "kafka.bootstrap.servers": self.bootstrap_servers,
            "topic": topic,
            "checkpointLocation": str(FOLDER / "checkpoints" / topic),
        }
        return rows.writeStream.format(SINKS[sink]).options(**options).trigger(**trigger).start()

    def large_batch(self, sink: str, source: Path, records: int) -> float:
        """The records per second of one micro-batch with all rows."""
        rows = self.spark.readStream.schema("key string, value string").parquet(str(source))
        query = self.start(rows, sink, {"availableNow": True})
        query.awaitTermination()
        (progress,) = [p for p in query.recentProgress if p["numInputRows"] > 0]
        if progress["numInputRows"] != records:
            raise SystemExit(f"{sink}: {progress['numInputRows']} of {records} rows were read")
        return records / (progress["durationMs"]["addBatch"] / 1000)

    def triggers(self, sink: str, rows_per_batch: int, batches: int) -> list[float]:
        """The milliseconds of each trigger, without the first few."""
        rows = (
            self.spark.readStream.format("rate-micro-batch")
            .option("rowsPerBatch", rows_per_batch)
            .option("numPartitions", PARTITIONS)
            .load()
            .selectExpr("string(value) AS key", "rpad(string(value), 93, 'x') AS value")
        )
        warm_up = 5
        query = self.start(rows, sink, {"processingTime": "0 seconds"})
        while query.isActive and len(query.recentProgress) < batches + warm_up:
            time.sleep(0.05)
        progresses = list(query.recentProgress)
        query.stop()
        if query.exception() is not None:
            raise SystemExit(f"{sink}: {query.exception()}")
        return [p["durationMs"]["triggerExecution"] for p in progresses[warm_up:]]


def main() -> int:
    """Measure, print a table, write the report. Return 1 if a bound is broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batches", type=int, default=15, help="triggers of one turn")
    arguments = parser.parse_args()
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    with EmbeddedKafka(FOLDER / "kafka") as kafka:
        bench = Bench(new_session(), kafka.bootstrap_servers)
        try:
            figures = measure(bench, arguments.records, arguments.rounds, arguments.batches)
        finally:
            bench.spark.stop()
    shutil.rmtree(FOLDER, ignore_errors=True)
    REPORT.write_text(json.dumps(figures, indent=2) + "\n")
    return report(figures)


def new_session() -> SparkSession:
    """A session with two cores, as on the machine of the published figures."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.jars", ",".join(str(jar) for jar in peer_jars()))
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.memory", "2g")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def measure(bench: Bench, records: int, rounds: int, batches: int) -> dict[str, Any]:
    """All measurements, the two sinks in turns."""
    source = FOLDER / "rows"
    rows = bench.spark.range(records, numPartitions=PARTITIONS)
    rows.selectExpr(
        "lpad(string(id), 8, '0') AS key", "rpad(string(id), 92, 'x') AS value"
    ).write.parquet(str(source))
    raw: dict[str, Any] = {
        "batch_write": in_turns(rounds, lambda sink: [bench.large_batch(sink, source, records)]),
        "trigger_1_row": in_turns(rounds, lambda sink: bench.triggers(sink, 1, batches)),
        "trigger_1000_rows": in_turns(rounds, lambda sink: bench.triggers(sink, 1000, batches)),
    }
    return compared(raw)


def compared(raw: dict[str, dict[str, list[float]]]) -> dict[str, Any]:
    """The measurements with their medians, and the ratio of each pair of medians."""
    medians = {
        name: {kind: statistics.median(values) for kind, values in by_kind.items()}
        for name, by_kind in raw.items()
    }
    ratios = {f"{name}_vs_jvm": m["txnkafka"] / m["jvm"] for name, m in medians.items()}
    return {**ratios, "medians": medians, "raw": raw}


def in_turns(rounds: int, run: Callable[[str], list[float]]) -> dict[str, list[float]]:
    """Warm both up, then measure them in turns, so that both meet the same load."""
    found: dict[str, list[float]] = {sink: [] for sink in SINKS}
    for round_number in range(rounds + 1):
        for sink in SINKS:
            values = run(sink)
            if round_number > 0:
                found[sink] += values
    return found


def report(figures: dict[str, Any]) -> int:
    """Print the table. Return 1 if a bound is broken."""
    broken = 0
    print(f"{'':26}{'jvm':>12}{'txnkafka':>12}{'ratio':>8}  bound")
    for name, (least, most) in BOUNDS.items():
        medians, ratio = figures["medians"][name.removesuffix("_vs_jvm")], figures[name]
        bound = f">= {least}" if least is not None else f"<= {most}"
        good = ratio >= least if least is not None else ratio <= most
        broken += not good
        unit = "rec/s" if least is not None else "ms"
        print(
            f"{name:26}{medians['jvm']:>12,.0f}{medians['txnkafka']:>12,.0f}{ratio:>8.2f}"
            f"  {bound} {'ok' if good else 'BROKEN'} ({unit})"
        )
    print(f"written to {REPORT}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
