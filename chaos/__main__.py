"""`python -m chaos --seed 7 --minutes 10`: faults at random, and a verdict.

Writes report.html and report.md to build/chaos, and the history to build/chaos/<seed>/. The exit
status is 1 where the judge found an anomaly.
"""

import argparse
import signal
import sys
from datetime import UTC, datetime
from pathlib import Path

from chaos import bench
from chaos.faults import FAULTS
from chaos.history import load
from chaos.report import figures


def tell(event):
    """What somebody who waits wants to see."""
    clock = datetime.fromtimestamp(event["wall"], UTC).strftime("%H:%M:%S")
    if event["kind"] == "fault":
        what = event["detail"] if event["phase"] == "skipped" else event["target"]
        print(f"{clock} {event['phase']:7} {event['name']}: {what}", file=sys.stderr, flush=True)
    elif event["kind"] == "driver":
        end = event.get("outcome", "")
        print(
            f"{clock} driver {event['number']} {event['phase']} {end}", file=sys.stderr, flush=True
        )


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m chaos", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--faults", type=int, help="so many, instead of some minutes")
    parser.add_argument("--nemeses", help=f"with commas between; there are {', '.join(FAULTS)}")
    parser.add_argument("--master", default=bench.MASTER)
    parser.add_argument("--rate", type=int, default=bench.RATE, help="rows a second")
    parser.add_argument("--transaction-timeout-ms", type=int, help="else chosen by the seed")
    parser.add_argument(
        "--bound-s", type=float, help="how long a recovery, or a standstill of readers, may take"
    )
    parser.add_argument(
        "--build", type=Path, default=bench.BUILD, help="the folder of reports and histories"
    )
    parser.add_argument("--judge", type=Path, help="judge this stored history again, run nothing")
    given = parser.parse_args(arguments)
    names = given.nemeses.split(",") if given.nemeses else None
    if unknown := set(names or ()) - set(FAULTS):
        parser.error(f"unknown {sorted(unknown)}; there are {', '.join(FAULTS)}")
    if given.judge is not None:
        path = given.judge
        verdict, report = bench.judge_stored(path, given.build)
    else:
        # SIGTERM ends it as Ctrl-C does, also in the background: all that was started is stopped.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        verdict, report = bench.run(
            given.seed,
            given.minutes,
            names,
            master=given.master,
            rate=given.rate,
            timeout_ms=given.transaction_timeout_ms,
            bound_s=given.bound_s,
            faults=given.faults,
            build=given.build,
            echo=tell,
        )
        path = given.build / str(given.seed) / "history.jsonl"
    for name, value in figures(verdict, load(path)).items():
        print(f"{name}: {value}")
    for anomaly in verdict.anomalies:
        print(f"ANOMALY {anomaly.kind}: {anomaly.text}; first {anomaly.rows[:3]}")
    print(f"report: {report}")
    return 1 if verdict.anomalies else 0


if __name__ == "__main__":
    sys.exit(main())
