"""Java is looked for before anything is started, and what is missing is one clear line."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_eos.testing import EmbeddedKafkaError
from spark_eos.testing._embedded.java import java_command, parse_release


@pytest.mark.parametrize(
    ("text", "release"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('openjdk version "21" 2023-09-19', 21),
        ('java version "1.8.0_402"', 8),
        ('Picked up JAVA_TOOL_OPTIONS: -Dx=1\nopenjdk version "25-ea" 2025-09-16', 25),
    ],
)
def test_release_is_read_from_what_java_prints(text: str, release: int) -> None:
    assert parse_release(text) == release


def test_unreadable_version_is_an_error() -> None:
    with pytest.raises(EmbeddedKafkaError, match="cannot read a Java version"):
        parse_release("no java here")


def test_missing_java_is_one_line_with_advice(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EmbeddedKafkaError, match=r"^Java was not found: install .*17.*$") as raised:
        java_command()
    assert "\n" not in str(raised.value)


def test_old_java_is_named_with_its_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    old = tmp_path / "bin" / "java"
    old.parent.mkdir()
    old.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2\n")
    old.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(EmbeddedKafkaError, match=f"Java 11 at {old} is too old"):
        java_command()


def test_broken_java_home_falls_back_to_path(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "gone"))
    assert not java_command().startswith(str(tmp_path))
