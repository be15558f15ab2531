"""What is public is on docs/api.md, and what is not begins with an underscore."""

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

import spark_eos

PRODUCT = Path(spark_eos.__file__).parent
PAGE = (PRODUCT.parent / "docs" / "api.md").read_text()
PUBLIC = ["spark_eos", *(f"spark_eos.{n}" for n in ("errors", "lag", "log", "job", "testing"))]


def sections():
    """The text below the heading of each public module."""
    parts = re.split(r"^## `(\w+(?:\.\w+)*)`\n", PAGE, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_module_that_has_no_underscore_has_a_section():
    modules = {path.stem for path in PRODUCT.iterdir() if not path.name.startswith(("_", "py."))}
    assert {f"spark_eos.{name}" for name in modules} == set(PUBLIC) - {"spark_eos"}
    assert sections().keys() == set(PUBLIC)


@pytest.mark.parametrize(
    "name", ["spark_eos", "spark_eos.lag", "spark_eos.log", "spark_eos.testing"]
)
def test_each_public_name_is_on_the_page_and_no_other(name):
    module = importlib.import_module(name)
    rows = re.findall(r"^\| (`[^|]+) \|", sections()[name], re.MULTILINE)
    told = {found for row in rows for found in re.findall(r"`(\w+)", row)}
    assert told == set(module.__all__)
    assert all(hasattr(module, found) for found in told)


def test_each_module_of_a_job_is_on_the_page_with_what_it_has():
    rows = re.findall(r"^\| `(\w+)` \| (.*) \|$", sections()["spark_eos.job"], re.MULTILINE)
    modules = {path.stem for path in (PRODUCT / "job").glob("[a-z]*.py")}
    assert {name for name, _ in rows} == modules
    for name, text in rows:
        module = importlib.import_module(f"spark_eos.job.{name}")
        assert all(hasattr(module, found) for found in re.findall(r"`(\w+)`", text))


def test_import_is_light():
    """An operator's command, or a worker, loads what it needs and no more."""
    code = (
        "import sys, spark_eos, spark_eos.errors, spark_eos.testing;"
        "sys.exit(bool({'pyspark', 'confluent_kafka', 'kafka', 'deltalake', 'pyarrow', 'pytest'}"
        " & sys.modules.keys()))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0
