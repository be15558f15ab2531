"""Driver. What the jobs with a Delta table on one side share."""

from typing import Final

from spark_eos.foreach_batch import txn_app_id
from spark_eos.recovery.checkpoint import Checkpoint

# The jar comes with the submit: --packages io.delta:delta-spark_4.2_2.13:4.4.0
DELTA_SETTINGS: Final = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}


def application(name: str, checkpoint: str) -> str:
    """The txnAppId of a job's micro-batches. A job knows its checkpoint, so it reads the id there:
    that also works in Spark Connect.
    """
    return txn_app_id(name, Checkpoint(checkpoint).query_id())
