"""The tests with the lowest and with the newest versions that setup.py allows.

Each end gets an environment of its own in `build/versions`. Exits with 1 if a test fails there.
"""

import re
import subprocess
import sys
from importlib.metadata import requires
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "build" / "versions"
TESTS = ("tests/unit", "tests/integration", "tests/spark")
# What a user installs. Tools of the development are the same at both ends.
EXTRAS = ("", "jobs")


def main() -> int:
    """Install and test both ends, or those that are named."""
    ends = {"lowest": lowest(), "newest": []}
    chosen = sys.argv[1:] or list(ends)
    return max(tested(end, ends[end]) for end in chosen)


def lowest() -> list[str]:
    """The lower bound of each requirement, as a constraint for pip."""
    found = []
    for text in requires("spark-eos") or []:
        requirement = Requirement(text)
        marker = requirement.marker
        if marker is not None and not any(marker.evaluate({"extra": extra}) for extra in EXTRAS):
            continue
        bound = re.search(r">=([\w.]+)", str(requirement.specifier))
        if bound:
            found.append(f"{requirement.name}=={bound[1]}")
    return found


def tested(end: str, constraints: list[str]) -> int:
    """The exit code of the tests at this end."""
    environment = FOLDER / end
    python = environment / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(environment)], check=True)
    pinned = environment / "constraints.txt"
    pinned.write_text("\n".join(constraints))
    install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*install, "-c", str(pinned), ".[dev]"], cwd=ROOT, check=True)
    listed = subprocess.run(
        [str(python), "-m", "pip", "freeze"], capture_output=True, text=True, check=True
    )
    names = {Requirement(text).name.lower() for text in requires("spark-eos") or []}
    shown = [line for line in listed.stdout.splitlines() if line.partition("=")[0].lower() in names]
    print(f"{end}: {', '.join(shown)}", flush=True)
    run = subprocess.run(
        [str(python), "-m", "pytest", "-q", "-n", "2", *TESTS], cwd=ROOT, check=False
    )
    return run.returncode


if __name__ == "__main__":
    sys.exit(main())
