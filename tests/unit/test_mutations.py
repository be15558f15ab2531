"""The lines that `make mutations` takes away are there, each once."""

from pathlib import Path

import pytest

from tests.mutations.mutants import MUTANTS

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_mutant_can_be_made(mutant):
    text = (ROOT / mutant.file).read_text()
    changed = mutant.apply(text)
    assert changed != text
    compile(changed, mutant.file, "exec")
