"""Driver. What the jobs with a Delta table on one side share."""

from typing import Final

from spark_eos.recovery.checkpoint import Checkpoint

# The jar comes with the submit: --packages io.delta:delta-spark_4.2_2.13:4.4.0
DELTA_SETTINGS: Final = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}


def application(name: str, checkpoint: str) -> str:
    """Who writes. The numbers of batches mean something only within one checkpoint, so its id is
    a part: with a new checkpoint they start at 0, and none may be taken for one of the old.
    """
    return f"{name}:{Checkpoint(checkpoint).query_id()}"
