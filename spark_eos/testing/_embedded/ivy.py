"""Test process. Fetch jars with pyspark's own Ivy, which needs only Java and pyspark.

Ivy's default repository is used. `SPARK_EOS_IVY_SETTINGS` can name a settings file with a mirror,
as for Spark's `spark.jars.ivySettings`.
"""

import os
import re
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Self
from xml.sax.saxutils import quoteattr

from spark_eos.testing._embedded.failure import EmbeddedKafkaError
from spark_eos.testing._embedded.java import java_command

SETTINGS_VARIABLE = "SPARK_EOS_IVY_SETTINGS"
PROBLEM = re.compile(
    r"^\s*(?:::\s+(.+: not found)|(.*(?:SERVER ERROR|Exception|[Ee]rror:).*))$", re.MULTILINE
)
JAR_PATTERN = "[artifact]-[revision](-[classifier]).[ext]"


class RetrievalError(EmbeddedKafkaError):
    """Ivy ended without the jars. A retry may help, because a registry may be down for a moment."""


@dataclass(frozen=True, slots=True)
class Coordinate:
    """One artifact: group, name and revision."""

    group: str
    name: str
    revision: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `group:name:revision`."""
        parts = text.split(":")
        if len(parts) != 3 or not all(parts):  # noqa: PLR2004
            raise EmbeddedKafkaError("{given!r} is not group:name:revision", given=text)
        return cls(*parts)


def pyspark_jars() -> Path:
    """The folder of the jars in the installed pyspark, found without importing pyspark."""
    spec = find_spec("pyspark")
    if spec is None or not spec.submodule_search_locations:
        raise EmbeddedKafkaError("pyspark is not installed. Install it: its jars contain Ivy")
    return Path(spec.submodule_search_locations[0]) / "jars"


def shipped_modules(jars: Iterable[str]) -> set[str]:
    """The possible module names of these jar files.

    `log4j-1.2-api-2.25.4.jar` can be cut in two places. Both results are safe, because they only
    exclude modules, and no module has the shorter name.
    """
    return {jar[: cut.start()] for jar in jars for cut in re.finditer(r"-\d", jar)}


def retrieve(
    coordinates: Iterable[Coordinate],
    folder: Path,
    *,
    cache: Path,
    without: Iterable[str] = (),
    timeout_s: float = 300.0,
) -> None:
    """Put the coordinates and their dependencies into a folder, except the modules `without`."""
    folder.mkdir(parents=True, exist_ok=True)
    description = folder / "ivy.xml"
    description.write_text(ivy_module(coordinates, without), encoding="utf-8")
    settings = os.environ.get(SETTINGS_VARIABLE)
    command = [
        java_command(),
        "-cp",
        f"{pyspark_jars()}/*",
        "org.apache.ivy.Main",
        *(["-settings", settings] if settings else []),
        *("-cache", str(cache), "-ivy", str(description), "-confs", "default"),
        *("-retrieve", f"{folder}/{JAR_PATTERN}"),
    ]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=timeout_s, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise RetrievalError("no answer from Ivy in {limit_s:.0f} s", limit_s=timeout_s) from error
    finally:
        description.unlink()
    if done.returncode != 0:
        raise RetrievalError(problem(done.stdout + done.stderr))


def ivy_module(coordinates: Iterable[Coordinate], without: Iterable[str]) -> str:
    """Ivy's description of a module that depends on the coordinates.

    Each coordinate is also excluded below the others. Otherwise Ivy asks for every revision that is
    named anywhere, even for one that its registry does not have.
    """
    wanted, dependencies = list(coordinates), ""
    names = {*without, *(item.name for item in wanted)}
    for item in wanted:
        others = (f"<exclude module={quoteattr(name)}/>" for name in sorted(names - {item.name}))
        dependencies += (
            f"<dependency org={quoteattr(item.group)} name={quoteattr(item.name)} "
            f'rev={quoteattr(item.revision)} conf="default->default">{"".join(others)}</dependency>'
        )
    return (
        '<ivy-module version="2.0"><info organisation="spark-eos" module="jars"/>'
        '<configurations><conf name="default"/></configurations>'
        f"<dependencies>{dependencies}</dependencies></ivy-module>"
    )


def problem(output: str) -> str:
    """The lines of Ivy's output that name the problem."""
    telling = PROBLEM.findall(output)
    lines = dict.fromkeys((missing or other).strip() for missing, other in telling)
    return "; ".join(list(lines)[:4]) or output.strip()[-500:] or "Ivy failed without any output"
