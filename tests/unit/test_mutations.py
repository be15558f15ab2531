"""The lines that `make mutations` takes away are there, each once, and what is left can run."""

import subprocess
import sys
from pathlib import Path

import pytest

from chaos.faults import FAULTS
from tests.mutations.chaos import TRIED
from tests.mutations.mutants import MUTANTS

ROOT = Path(__file__).parents[2]
UNDEFINED = [
    sys.executable,
    "-m",
    "ruff",
    "check",
    "--isolated",
    "--quiet",
    "--select",
    "F821",
    "-",
]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_mutant_can_be_made(mutant):
    text = (ROOT / mutant.file).read_text()
    changed = mutant.apply(text)
    assert changed != text
    found = subprocess.run(UNDEFINED, input=changed, capture_output=True, text=True, check=False)
    assert (found.returncode, found.stdout) == (0, "")


@pytest.mark.parametrize("tried", TRIED, ids=lambda tried: tried.mutant)
def test_what_the_bench_is_tried_with_is_there(tried):
    assert tried.mutant in {mutant.name for mutant in MUTANTS}
    assert set(tried.nemeses.split(",")) <= FAULTS.keys()
