"""What the pages for developers name is there."""

import re
from pathlib import Path

import pytest

from docs.option_tables import PAGES as PAGES_WITH_OPTIONS
from docs.option_tables import TABLES, written

ROOT = Path(__file__).parents[2]
PAGES = ["ARCHITECTURE.md", "CONTRIBUTING.md", "docs/upstream.md"]
PAGES += sorted(str(page.relative_to(ROOT)) for page in (ROOT / "docs/design").glob("*.md"))
FOLDERS = ("", "spark_eos", "tests")


@pytest.mark.parametrize("page", PAGES)
def test_files_and_tests_that_a_page_names_are_there(page):
    for name, test in re.findall(r"`([\w/]+\.py)(?:::(test_\w+))?`", (ROOT / page).read_text()):
        found = [ROOT / folder / name for folder in FOLDERS if (ROOT / folder / name).is_file()]
        assert found, name
        assert not test or f"def {test}(" in found[0].read_text(), f"{name}::{test}"


@pytest.mark.parametrize("page", PAGES)
def test_links_of_a_page_lead_somewhere(page):
    here = (ROOT / page).parent
    for target in re.findall(r"\]\(([^)#:]+)(?:#[\w-]+)?\)", (ROOT / page).read_text()):
        assert (here / target).exists(), target


def test_tables_of_options_are_those_of_the_product():
    pages = [page.read_text() for page in PAGES_WITH_OPTIONS]
    for kind in TABLES:
        assert sum(f"<!-- options: {kind} -->" in page for page in pages) == 1
    for page in pages:
        assert written(page) == page, "run make docs"
