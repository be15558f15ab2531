"""Does the random bench notice a broken product? `make mutations-chaos`, some minutes for each.

The simulation notices every mutant; these are those whose damage a run of `make chaos` can see from
outside too: rows, groups, readers that wait. Each gets the faults that its line is there for.
"""

import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.mutations.__main__ import copy_project, run_in
from tests.mutations.mutants import MUTANTS

TIMEOUT_S = 1800
ANOMALY = "ANOMALY "


@dataclass(frozen=True)
class Tried:
    """A mutant, the faults that it gets, and how many."""

    mutant: str
    nemeses: str
    faults: int


TRIED = (
    Tried("EndTxn before the decision", "driver-kill-at", 6),
    Tried("no recovery", "driver-kill-at", 6),
    Tried("the offsets are committed on their own", "driver-kill-at", 6),
    Tried("refused is taken for committed", "time-out-down", 3),
    Tried("a torn batch is written whole", "torn-by-time-out", 3),
    Tried("abort() does not fence the partitions without a message", "driver-stop", 6),
)


def main(words):
    """Those whose mutant's name has one of the words, or all."""
    chosen = [t for t in TRIED if not words or any(word in t.mutant for word in words)]
    noticed = [is_noticed(tried) for tried in chosen]
    print(f"{sum(noticed)} of {len(noticed)} noticed by the bench")
    return int(not noticed or not all(noticed))


def is_noticed(tried):
    (mutant,) = (m for m in MUTANTS if m.name == tried.mutant)
    with tempfile.TemporaryDirectory(prefix="spark-eos-mutations-") as name:
        folder = Path(name)
        copy_project(folder)
        path = folder / mutant.file
        path.write_text(mutant.apply(path.read_text()))
        run = run_in(folder, "chaos", *arguments(tried), timeout_s=TIMEOUT_S)
    lines = run.stdout.splitlines()
    found = [line for line in lines if line.startswith(ANOMALY)]
    # A bench that could not run is an error of this program, and notices nothing.
    assert (run.returncode == 1) == bool(found), run.stdout + run.stderr
    print(f"{'noticed' if found else 'MISSED':8} {tried.mutant}, by {tried.nemeses}")
    for line in found:
        print(f"         {line[len(ANOMALY) :][:160]}", flush=True)
    return bool(found)


def arguments(tried):
    """Fewer processes than the bench has: what these mutants break does not need executors."""
    return [
        *("--seed", "1", "--build", "build"),
        *("--master", "local[2,4]", "--transaction-timeout-ms", "12000"),
        *("--nemeses", tried.nemeses, "--faults", str(tried.faults)),
    ]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
