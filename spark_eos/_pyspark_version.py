"""Every process. Refuses a PySpark that this package cannot run with, in one clear line."""

from importlib import import_module
from typing import Final

from spark_eos.errors import OptionError

# The first versions whose writers get Arrow batches, and whose sources can limit a batch.
WRITES: Final = (4, 1)
READS: Final = (4, 2)
NEEDED: Final = (
    "spark_eos needs PySpark 4.2; its writes also run with 4.1. A Spark runtime brings its own:"
    " start Python where that is on the path. Elsewhere: pip install 'spark-eos[pyspark]'"
)


def check_pyspark(first: tuple[int, int]) -> None:
    """Raise if the running PySpark is older than `first`."""
    version: str = import_module("pyspark").__version__
    if tuple(int(part) for part in version.split(".")[:2]) < first:
        raise OptionError("this is PySpark {version}. {needed}", version=version, needed=NEEDED)
