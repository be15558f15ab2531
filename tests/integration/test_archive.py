"""The packed environment, alone: unpacked elsewhere, with no variable set, under another folder."""

import json
import re
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GLIBC = re.compile(r"(ld-linux.*|lib(c|dl|m|mvec|pthread|resolv|rt|util))\.so(\.\d+)?")

IMPORTS = """
import json, sys
import bz2, ctypes, lzma, sqlite3, ssl, zlib
import confluent_kafka.admin, deltalake, kafka, numpy, pandas, py4j, pyarrow.parquet
import pyspark, pyspark_txnkafka, spark_eos
modules = [vars(module) for module in list(sys.modules.values())]
maps = [line.split(maxsplit=5) for line in open("/proc/self/maps")]
json.dump({
    "executable": sys.executable,
    "path": [path for path in sys.path if path],
    "modules": [module["__file__"] for module in modules if module.get("__file__")],
    "bytecode": [module["__cached__"] for module in modules if module.get("__cached__")],
    "libraries": sorted({fields[5].strip() for fields in maps if ".so" in fields[-1]}),
}, sys.stdout)
"""


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    subprocess.run(["make", "--silent", "archive"], cwd=ROOT, check=True, timeout=120)
    folder = tmp_path_factory.mktemp("archive") / "with a space"
    with tarfile.open(ROOT / "build" / "spark-eos-environment.tar.gz") as archive:
        archive.extractall(folder)
    yield folder
    # Half a gigabyte, which pytest would keep for two more runs.
    shutil.rmtree(folder)


def ask(python, cwd, environment=None):
    answer = subprocess.run(
        [str(python), "-c", IMPORTS],
        cwd=cwd,
        env=environment or {},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr
    return json.loads(answer.stdout)


def outside(folder, paths):
    return [path for path in paths if not Path(path).is_relative_to(folder)]


def test_everything_comes_from_the_folder(unpacked, tmp_path):
    found = ask(unpacked / "bin" / "python", tmp_path)
    assert outside(unpacked, [found["executable"], *found["path"], *found["modules"]]) == []
    foreign = outside(unpacked, found["libraries"])
    assert [path for path in foreign if not GLIBC.fullmatch(Path(path).name)] == []


def test_nothing_is_compiled_at_the_first_import(unpacked, tmp_path):
    """Not even where who unpacks gives the sources new times, as Spark does."""
    source = unpacked / "lib" / "python3.11" / "site-packages" / "spark_eos" / "__init__.py"
    source.touch()
    before = {path: path.stat().st_mtime_ns for path in unpacked.rglob("*.pyc")}
    found = ask(unpacked / "bin" / "python", tmp_path)
    assert {path: path.stat().st_mtime_ns for path in unpacked.rglob("*.pyc")} == before
    assert {Path(path) for path in found["bytecode"] if path.endswith(".pyc")} <= set(before)


def test_found_through_links_and_in_a_hostile_environment(unpacked, tmp_path):
    (tmp_path / "environment").symlink_to(unpacked)
    (tmp_path / "python").symlink_to(Path("environment", "bin", "python"))
    hostile = {"PYTHONHOME": "/nowhere", "PATH": "/usr/bin:/bin", "CDPATH": "/"}
    for python in ("./python", "environment/bin/python"):
        found = ask(python, tmp_path, hostile)
        assert outside(unpacked, [found["executable"], *found["modules"]]) == []
