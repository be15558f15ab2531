"""What Ivy is asked for, and what is told of its answer."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from spark_eos.testing import EmbeddedKafkaError
from spark_eos.testing._embedded.ivy import (
    Coordinate,
    RetrievalError,
    ivy_module,
    problem,
    retrieve,
    shipped_modules,
)

ANSWER = """
:: loading settings :: url = jar:file:/x/ivysettings.xml
\t\tmodule not found: org.example#absent;1.0
\t==== local: tried
\t\t::          UNRESOLVED DEPENDENCIES         ::
\t\t:: org.example#absent;1.0: not found
"""


def test_coordinate_is_three_parts() -> None:
    assert Coordinate.parse("a.b:c_2.13:1.0") == Coordinate("a.b", "c_2.13", "1.0")


@pytest.mark.parametrize("text", ["", "a:b", "a:b:c:d", "a::1"])
def test_coordinate_of_other_shape_is_refused(text: str) -> None:
    with pytest.raises(EmbeddedKafkaError, match="group:name:revision"):
        Coordinate.parse(text)


def test_jar_names_give_every_module_they_may_stand_for() -> None:
    names = ["log4j-1.2-api-2.25.4.jar", "spark-sql_2.13-4.2.0.jar", "zstd-jni-1.5.7-7.jar"]
    assert shipped_modules(names) >= {"log4j-1.2-api", "spark-sql_2.13", "zstd-jni"}


def test_module_excludes_what_is_shipped_and_what_is_listed_itself() -> None:
    listed = [Coordinate("g", "first", "1"), Coordinate("g", "second", "2")]
    dependencies = ElementTree.fromstring(ivy_module(listed, without={"shipped"})).iter(
        "dependency"
    )
    assert {
        item.get("name"): {exclude.get("module") for exclude in item} for item in dependencies
    } == {"first": {"shipped", "second"}, "second": {"shipped", "first"}}


def test_problem_is_cut_out_of_a_long_answer() -> None:
    assert problem(ANSWER) == "org.example#absent;1.0: not found"


def test_problem_without_a_known_line_is_the_end_of_the_answer() -> None:
    assert problem("something else") == "something else"


def test_failing_ivy_is_a_retrieval_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    _fake_java(tmp_path, "echo ':: g#n;1: not found'; exit 1")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(RetrievalError, match="g#n;1: not found"):
        retrieve([Coordinate("g", "n", "1")], tmp_path / "jars", cache=tmp_path / "cache")


def test_silent_ivy_ends_at_the_time_limit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    _fake_java(tmp_path, "exec sleep 60")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(RetrievalError, match="no answer"):
        retrieve(
            [Coordinate("g", "n", "1")], tmp_path / "jars", cache=tmp_path / "c", timeout_s=0.3
        )


def _fake_java(home: Path, body: str) -> None:
    java = home / "bin" / "java"
    java.parent.mkdir()
    version = 'if [ "$1" = -version ]; then echo \'version "17"\' >&2; exit 0; fi'
    java.write_text(f"#!/bin/sh\n{version}\n{body}\n")
    java.chmod(0o755)
