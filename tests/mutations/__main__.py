"""Take away one line of the protocol after the other, and see the tests go red: `make mutations`.

Works on a copy of the project. Tells which test noticed each; ends with 1 if one went unnoticed, or
if a test fails only because the changed code cannot run: that would be red whatever is guarded.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from tests.mutations.mutant import SIMULATION
from tests.mutations.mutants import MUTANTS

ROOT = Path(__file__).parents[2]
COPIED = ("spark_eos", "chaos", "tests", "pyproject.toml")
OPTIONS = ("-q", "-x", "--tb=line", "-p", "no:cacheprovider", "-p", "no:randomly", "-m")
# The files of the simulation that take a minute and more. Most mutants are noticed before.
LAST = ("every_crash_point", "two_drivers", "batch_write", "stop_in_commit")
TIMEOUT_S = 1800
CANNOT_RUN = re.compile(r"\b(Name|UnboundLocal|Attribute|Type|Import|ModuleNotFound)Error\b")


def main(words):
    """Those whose name has one of the words, or all."""
    chosen = [m for m in MUTANTS if not words or any(word in m.name for word in words)]
    with tempfile.TemporaryDirectory(prefix="spark-eos-mutations-") as name:
        folder = Path(name)
        copy_project(folder)
        for tests in sorted({mutant.tests for mutant in chosen}):
            red = first_failure(folder, tests)
            assert red is None, f"red before anything was taken away: {red}"
        noticed = [is_noticed(mutant, folder) for mutant in chosen]
    print(f"{sum(noticed)} of {len(noticed)} noticed")
    return int(not noticed or not all(noticed))


def copy_project(folder):
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, folder)


def run_in(folder, module, *words, timeout_s):
    """Run a program of the copy."""
    return subprocess.run(
        [sys.executable, "-m", module, *words],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )


def is_noticed(mutant, folder):
    path = folder / mutant.file
    text = path.read_text()
    path.write_text(mutant.apply(text))
    began = time.monotonic()
    red = first_failure(folder, mutant.tests)
    path.write_text(text)
    if red is None:
        verdict, why = "MISSED", f"by no test of {mutant.tests}"
    elif CANNOT_RUN.search(red.text):
        verdict, why = "BROKEN", f"{red.test}: {CANNOT_RUN.search(red.text)[0]}"
    else:
        verdict, why = "noticed", red.test
    print(f"{verdict:8} {time.monotonic() - began:4.0f} s  {mutant.name}")
    print(f"                 {why}", flush=True)
    return verdict == "noticed"


@dataclass(frozen=True)
class Failure:
    """A test that fails, and what the run said of it."""

    test: str
    text: str


def in_order(folder):
    files = sorted((folder / SIMULATION).glob("test_*.py"))
    return sorted(map(str, files), key=lambda file: file.endswith(tuple(f"{n}.py" for n in LAST)))


def first_failure(folder, tests):
    """The first `Failure`, or None. What is no failure of a test is an error of this program."""
    # The simulation also holds real brokers to its contract, and no mutant changes those.
    marked = "not broker and not slow" if tests == SIMULATION else "not slow"
    files = in_order(folder) if tests == SIMULATION else [tests]
    run = run_in(folder, "pytest", *OPTIONS, marked, *files, timeout_s=TIMEOUT_S)
    if run.returncode == 0:
        return None
    failed = [line for line in run.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    assert (run.returncode, bool(failed)) == (1, True), run.stdout + run.stderr
    return Failure(failed[0].split(" - ")[0].partition("::")[2], run.stdout)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
