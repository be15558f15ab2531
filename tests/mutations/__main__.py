"""Take away one line of the protocol after the other, and see the tests go red: `make mutations`.

Works on a copy of the project. Tells which test noticed each; ends with 1 if one went unnoticed.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.mutations.mutant import SIMULATION
from tests.mutations.mutants import MUTANTS

ROOT = Path(__file__).parents[2]
COPIED = ("spark_eos", "tests", "pyproject.toml")
OPTIONS = ("-q", "-x", "--tb=no", "-p", "no:cacheprovider", "-m")
TIMEOUT_S = 600


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


def is_noticed(mutant, folder):
    path = folder / mutant.file
    text = path.read_text()
    path.write_text(mutant.apply(text))
    began = time.monotonic()
    red = first_failure(folder, mutant.tests)
    path.write_text(text)
    print(f"{'noticed' if red else 'MISSED':8} {time.monotonic() - began:4.0f} s  {mutant.name}")
    print(f"                 {red or 'by no test of ' + mutant.tests}", flush=True)
    return bool(red)


def first_failure(folder, tests):
    """The test that fails, or None. What is no failure of a test is an error of this program."""
    # The simulation also holds real brokers to its contract, and no mutant changes those.
    marked = "not broker and not slow" if tests == SIMULATION else "not slow"
    run = subprocess.run(
        [sys.executable, "-m", "pytest", *OPTIONS, marked, tests],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    if run.returncode == 0:
        return None
    failed = [line for line in run.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    assert (run.returncode, bool(failed)) == (1, True), run.stdout + run.stderr
    return failed[0].split(" - ")[0].partition("::")[2]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
