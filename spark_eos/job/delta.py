"""Driver. What the jobs with a Delta table on one side share."""

import json
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from spark_eos._checkpoint.checkpoint import Checkpoint
from spark_eos._foreach_batch import txn_app_id
from spark_eos.errors import NonDeterministicReplayError

# The jar comes with the submit: --packages io.delta:delta-spark_4.2_2.13:4.4.0
DELTA_SETTINGS: Final = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
# A file of the checkpoint, beside those of Spark.
_FIRST_NAME: Final = "txn_app_name"
# So many commits of the table are looked at. The job's own last one is among the newest, unless
# others write to the table far more often.
_COMMITS: Final = 1000


def application(name: str, checkpoint: str) -> str:
    """The txnAppId of the micro-batches of the job `name`.

    A job may be renamed, so the checkpoint keeps the name under which the job wrote first. A job
    knows its checkpoint, so it reads the query's id there: that also works in Spark Connect.
    """
    found = Checkpoint(checkpoint)
    return txn_app_id(found.keep(_FIRST_NAME, name), found.query_id())


class DeltaAppends:
    """The appends of one run of a job, each micro-batch once.

    Delta leaves out a write whose version the table has already, and does not compare the rows. A
    checkpoint that was restored from a backup gives those versions to other rows, which would then
    be lost. So each commit says what its micro-batch has read, and that is compared first.
    """

    def __init__(self, application: str, checkpoint: str) -> None:
        self._application = application
        self._checkpoint = Checkpoint(checkpoint)
        self._written: dict[str, dict[int, str]] = {}  # of each table, when the run began

    def append(self, rows: DataFrame, table: str, batch_id: int) -> None:
        """Add rows, unless the table has this micro-batch already."""
        read = self._checkpoint.input_digest(batch_id)
        if table not in self._written:
            self._written[table] = _written(rows.sparkSession, table, self._application)
        written = self._written[table]
        if batch_id <= max(written, default=-1) and written.get(batch_id) != read:
            raise NonDeterministicReplayError(
                f"the Delta table '{table}' has micro-batch {batch_id} of this job already, and the"
                " micro-batch that runs now has read other offsets: the checkpoint"
                f" '{self._checkpoint.location}' was restored from a backup, or was edited. Nothing"
                " was written. Put the newest checkpoint back. Where it is gone, start with a new"
                " checkpoint, and with startingOffsets behind what is in the table"
            )
        version = {"txnAppId": self._application, "txnVersion": str(batch_id)}
        (
            rows.write.format("delta")
            .mode("append")
            .options(**version)
            .option("userMetadata", json.dumps({**version, "input": read}))
            .save(table)
        )


def _written(spark: SparkSession, table: str, application: str) -> dict[int, str]:
    """What the newest micro-batches in the table have read."""
    from delta.tables import DeltaTable

    if not DeltaTable.isDeltaTable(spark, table):
        return {}
    history = DeltaTable.forPath(spark, table).history(_COMMITS)
    texts = [row.userMetadata for row in history.select("userMetadata").collect()]
    commits = [found for found in map(_commit, texts) if found.get("txnAppId") == application]
    return {int(commit["txnVersion"]): commit["input"] for commit in commits}


def _commit(user_metadata: str | None) -> dict[str, str]:
    """What this module has said of a commit. Others may write anything there."""
    try:
        found = json.loads(user_metadata or "")
    except ValueError:
        return {}
    return found if isinstance(found, dict) and "input" in found else {}
