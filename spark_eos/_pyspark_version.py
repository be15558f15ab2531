"""Every process. Which PySpark this package can run with, in one clear line where it cannot."""

from importlib import import_module
from typing import Final

from spark_eos.errors import OptionError

# The first ones whose writers are given Arrow batches, and whose sources may limit a batch.
WRITES: Final = (4, 1)
READS: Final = (4, 2)
NEEDED: Final = (
    "spark_eos needs PySpark 4.2; its writes also run with 4.1. A Spark runtime brings its own:"
    " start Python where that is on the path. Elsewhere: pip install 'spark-eos[pyspark]'"
)


def check_pyspark(first: tuple[int, int]) -> None:
    """Raise where the PySpark that runs is older."""
    version: str = import_module("pyspark").__version__
    if tuple(int(part) for part in version.split(".")[:2]) < first:
        raise OptionError(f"this is PySpark {version}. {NEEDED}")
