"""The command line's own promises: light to start, and honest exit codes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from spark_eos import __version__
from spark_eos._cli.main import main


def test_command_line_loads_no_pyspark() -> None:
    code = "import sys, spark_eos._cli.main; sys.exit('pyspark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0


def test_version_is_the_packages(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"spark-eos {__version__}\n"


@pytest.mark.parametrize(
    "arguments",
    [[], ["broker"], ["nothing"], ["broker", "start", "--nodes", "2"]]
    + [["broker", "start", "--property", text] for text in ("novalue", "=x")],
)
def test_wrong_arguments_are_exit_code_2(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert "usage: spark-eos" in capsys.readouterr().err


def test_status_of_an_empty_folder_is_exit_code_3(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["broker", "status", "--folder", str(tmp_path)]) == 3
    assert capsys.readouterr().out == f"not running: {tmp_path}\n"


def test_stop_of_an_empty_folder_is_done_already(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["broker", "stop", "--folder", str(tmp_path)]) == 0
    assert capsys.readouterr().out == f"not running: {tmp_path}\n"


def test_failed_command_is_one_line_and_exit_code_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SPARK_EOS_KAFKA_JARS", str(tmp_path / "none"))
    assert main(["broker", "start", "--folder", str(tmp_path)]) == 1
    error = capsys.readouterr().err
    assert error.startswith("spark-eos: SPARK_EOS_KAFKA_JARS=")
    assert error.count("\n") == 1
