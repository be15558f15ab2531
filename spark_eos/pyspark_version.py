"""Every process. Which PySpark this package can run with, in one clear line where it cannot."""

from importlib import import_module
from typing import Final

from spark_eos.errors import OptionError

# The first one whose writers are given Arrow batches.
_FIRST: Final = (4, 1)
NEEDED: Final = (
    "spark_eos needs PySpark 4.1 or newer. A Spark runtime brings its own: start Python where that"
    " is on the path. Elsewhere: pip install 'spark-eos[pyspark]'"
)


def check_pyspark() -> None:
    """Raise where the PySpark that runs is too old."""
    version: str = import_module("pyspark").__version__
    if tuple(int(part) for part in version.split(".")[:2]) < _FIRST:
        raise OptionError(f"this is PySpark {version}. {NEEDED}")
