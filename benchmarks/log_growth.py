"""Whether the cost of a batch stays the same as the transaction log grows.

One query takes the steps of the sink: read the last batch, append `PrepareCommit` for this batch
and `CompleteCommit` for the previous one, maintain. At the end another process opens the log.

The load of a machine changes within minutes. So the last batches alternate with the first batches
of a second, new log: `young` is the cost of the same work at the same time without a past. The
bounds are on that comparison. First against last has a bound on its median only.

    python -m benchmarks.log_growth --appends 20000
"""

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TypeVar

from spark_eos._log import TransactionLog
from spark_eos._protocol.offsets.topic_partition import PartitionOffsets
from spark_eos._protocol.transactions.state import TransactionState
from spark_eos._protocol.transactions.transaction import ProducerIdentity, TransactionRecord

T = TypeVar("T")

QUERY_ID = "9f8f1b6e-3a52-4c1d-8a57-1f5f2a9f6a11"
RUN_ID = "0d6a2c61-5d0b-4a06-9a6d-0a2f8f1d7c42"
PARTITIONS = 4
WINDOW = 1_000

MAX_RATIO = 1.5
MAX_OPEN_MS = 100.0

OPEN = """
import json, sys, time
from spark_eos._log import TransactionLog
def timed(work):
    start = time.perf_counter()
    result = work()
    return result, (time.perf_counter() - start) * 1e3
log, open_ms = timed(lambda: TransactionLog.open(sys.argv[1]))
batch, last_batch_ms = timed(lambda: log.last_batch(sys.argv[2]))
_, refresh_ms = timed(log.refresh)
print(json.dumps({"open_ms": open_ms, "last_batch_ms": last_batch_ms, "refresh_ms": refresh_ms,
                  "batch_id": batch.batch_id, "rows": len(batch.records)}))
"""


@dataclass
class Times:
    """The milliseconds of each step, one entry per batch."""

    look: list[float] = field(default_factory=list)
    append: list[float] = field(default_factory=list)
    maintain: list[float] = field(default_factory=list)


def prepared(batch_id: int, at: datetime) -> list[TransactionRecord]:
    """The decision rows of one batch."""
    return [
        TransactionRecord(
            identity=ProducerIdentity(
                transactional_id=f"spark-eos-{QUERY_ID}-{partition}",
                producer_id=4_000 + partition,
                producer_epoch=batch_id % 30_000,
            ),
            transaction_timeout_ms=60_000,
            state=TransactionState.PREPARE_COMMIT,
            partitions=tuple(
                PartitionOffsets(
                    topic="orders",
                    partition=number,
                    first_offset=batch_id * 251 + number,
                    last_offset=batch_id * 251 + 249,
                    records=249,
                )
                for number in range(PARTITIONS)
            ),
            entry_timestamp=at,
            start_timestamp=at,
            query_id=QUERY_ID,
            run_id=RUN_ID,
            batch_id=batch_id,
            sink_partition=partition,
            sink_partitions=PARTITIONS,
            digest=f"{hash((batch_id, partition)) & (1 << 128) - 1:032x}",
            input_digest=f"{hash((batch_id, 'input')) & (1 << 128) - 1:032x}",
        )
        for partition in range(PARTITIONS)
    ]


def drive(log: TransactionLog, batch_ids: range, times: Times) -> None:
    """Run the query's batches."""
    for batch_id in batch_ids:
        last = _timed(times.look, lambda: log.last_batch(QUERY_ID))
        at = log.next_timestamp(QUERY_ID)
        open_rows = last.records if last else ()
        done = [row.moved_to(TransactionState.COMPLETE_COMMIT, at) for row in open_rows]
        rows = [*done, *prepared(batch_id, at)]
        _timed(times.append, partial(log.append, QUERY_ID, batch_id, rows))
        _timed(times.maintain, log.maintain)
        if batch_id and batch_id % 2_000 == 0:
            print(f"  {batch_id} {statistics.median(times.append[-WINDOW:]):.2f} ms", flush=True)


def take_turns(old: TransactionLog, young: TransactionLog, appends: int, times: Times) -> Times:
    """Alternate between the last batches of one log and the first of another."""
    young_times = Times()
    window = min(WINDOW, appends // 2)
    for number in range(window):
        last = appends - window + number
        drive(old, range(last, last + 1), times)
        drive(young, range(number, number + 1), young_times)
    return young_times


def _timed(into: list[float], work: Callable[[], T]) -> T:
    start = time.perf_counter()
    result = work()
    into.append((time.perf_counter() - start) * 1e3)
    return result


def totals(times: Times) -> list[float]:
    """The milliseconds of whole batches: look, append, maintain."""
    return [sum(parts) for parts in zip(times.look, times.append, times.maintain, strict=True)]


def report(times: Times, young: Times, location: Path, seconds: float) -> dict[str, float]:
    """The figures, by name."""
    window = min(WINDOW, len(times.append) // 2)
    # The very first appends load code, so they are left out.
    first, last = slice(10, window + 10), slice(-window, None)
    total = totals(times)
    command = [sys.executable, "-c", OPEN, str(location), QUERY_ID]
    fresh = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    files = [path for path in location.rglob("*") if path.is_file()]
    figures = {
        "appends": len(times.append),
        "seconds": seconds,
        "append_median_first_ms": statistics.median(times.append[first]),
        "append_median_last_ms": statistics.median(times.append[last]),
        "append_mean_first_ms": statistics.mean(times.append[first]),
        "append_mean_last_ms": statistics.mean(times.append[last]),
        "append_median_young_ms": statistics.median(young.append),
        "append_mean_young_ms": statistics.mean(young.append),
        "batch_mean_young_ms": statistics.mean(totals(young)),
        "batch_mean_first_ms": statistics.mean(total[first]),
        "batch_mean_last_ms": statistics.mean(total[last]),
        "maintain_mean_ms": statistics.mean(times.maintain),
        "maintain_max_ms": max(times.maintain),
        "last_batch_cached_mean_ms": statistics.mean(times.look),
        "open_fresh_process_ms": fresh["open_ms"],
        "last_batch_fresh_process_ms": fresh["last_batch_ms"],
        "refresh_nothing_new_ms": fresh["refresh_ms"],
        "size_mb": sum(path.stat().st_size for path in files) / 1e6,
        "files": len(files),
        "commit_files": sum(path.parent.name == "_delta_log" for path in files),
    }
    for name in ("append_median", "append_mean", "batch_mean"):
        for other in ("first", "young"):
            ratio = figures[f"{name}_last_ms"] / figures[f"{name}_{other}_ms"]
            figures[f"{name}_last_to_{other}"] = ratio
    if fresh["batch_id"] != len(times.append) - 1 or fresh["rows"] != PARTITIONS:
        raise SystemExit(f"the last batch is wrong: {fresh}")
    return figures


def broken_bounds(figures: dict[str, float]) -> list[str]:
    """The broken bounds, as texts."""
    ratios = [name for name in figures if name.endswith("_last_to_young")]
    ratios.append("append_median_last_to_first")
    broken = [f"{n} = {figures[n]:.2f} > {MAX_RATIO}" for n in ratios if figures[n] > MAX_RATIO]
    if figures["open_fresh_process_ms"] >= MAX_OPEN_MS:
        broken.append(f"open takes {figures['open_fresh_process_ms']:.0f} ms >= {MAX_OPEN_MS:.0f}")
    return broken


def main() -> int:
    """Measure, print and store the figures. Return 1 if a bound is broken."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--appends", type=int, default=20_000)
    parser.add_argument("--out", type=Path, default=Path("build/bench-log.json"))
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="log-growth-"))
    try:
        log = TransactionLog.open(str(folder / "log"))
        start = time.perf_counter()
        times, appends = Times(), arguments.appends
        drive(log, range(appends - min(WINDOW, appends // 2)), times)
        young = take_turns(log, TransactionLog.open(str(folder / "young")), appends, times)
        figures = report(times, young, folder / "log", time.perf_counter() - start)
    finally:
        shutil.rmtree(folder)
    for name, value in figures.items():
        print(f"{name:30} {value:12,.2f}")
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    stamp = datetime.now(UTC).isoformat(timespec="seconds")
    arguments.out.write_text(json.dumps({"at": stamp, **figures}, indent=2) + "\n")
    broken = broken_bounds(figures)
    for line in broken:
        print(f"BROKEN: {line}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
