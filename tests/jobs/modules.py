"""The programs of `jobs/` as modules: they are scripts, and no package."""

import importlib.util
from pathlib import Path

ROOT = Path(__file__).parents[2]
NAMES = sorted(path.stem for path in (ROOT / "jobs").glob("*.py"))


def program(name):
    """The module, and the model of its file."""
    spec = importlib.util.spec_from_file_location(f"job_{name}", ROOT / "jobs" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    model = "".join(part.capitalize() for part in name.split("_"))
    return module, getattr(module, model)
