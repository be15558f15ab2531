"""The examples of docs/testing.md run, in a pytest of their own that knows the package only."""

import os
import re
import subprocess
import sys
from pathlib import Path

PAGE = (Path(__file__).parents[2] / "docs" / "testing.md").read_text()


def test_examples_run(tmp_path: Path) -> None:
    one, another = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "test_job.py").write_text(one)
    (tmp_path / "test_broker.py").write_text(another)
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", "--basetemp", "run", "."],
        cwd=tmp_path,
        env=os.environ | {"SPARK_LOCAL_IP": "127.0.0.1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "2 passed" in run.stdout
