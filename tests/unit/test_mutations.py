"""The lines that `make mutations` takes away are there, each once, and what is left can run."""

import subprocess
import sys
from pathlib import Path

import pytest

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
