"""Driver. The parts of jobs that read or write a Delta table."""

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
# How many commits are searched for the job's last one. Only far busier writers could hide it.
_COMMITS: Final = 1000


def application(name: str, checkpoint: str) -> str:
    """The txnAppId of a job's micro-batches.

    A job may be renamed, so the checkpoint keeps its first name. The query id is read from the
    checkpoint too, which also works with Spark Connect.
    """
    found = Checkpoint(checkpoint)
    return txn_app_id(found.keep(_FIRST_NAME, name), found.query_id())


class DeltaAppends:
    """The appends of one run of a job, each micro-batch once.

    Delta skips a version that the table has, and compares nothing. A restored checkpoint gives that
    version to other rows, which would be lost. So each commit carries the digest of its
    micro-batch's input, and `append` compares it. See docs/design/jobs.md.
    """

    def __init__(self, application: str, checkpoint: str) -> None:
        self._application = application
        self._checkpoint = Checkpoint(checkpoint)
        self._written: dict[str, dict[int, str]] = {}  # by table, as of its first append

    def append(self, rows: DataFrame, table: str, batch_id: int) -> None:
        """Append rows, unless the table has this micro-batch already."""
        read = self._checkpoint.input_digest(batch_id)
        if table not in self._written:
            self._written[table] = _written(rows.sparkSession, table, self._application)
        written = self._written[table]
        if batch_id <= max(written, default=-1) and written.get(batch_id) != read:
            raise NonDeterministicReplayError(
                "the Delta table '{table}' has micro-batch {batch_id} of this job already, but with"
                " other offsets. The checkpoint '{checkpoint}' was restored or edited. Nothing was"
                " written. Put the newest checkpoint back. If it is lost, use a new checkpoint, and"
                " set startingOffsets to the offsets after those in the table",
                table=table,
                batch_id=batch_id,
                checkpoint=self._checkpoint.location,
            )
        version = {"txnAppId": self._application, "txnVersion": str(batch_id)}
        options = {**version, "userMetadata": json.dumps({**version, "input": read})}
        rows.write.format("delta").mode("append").options(**options).save(table)


def _written(spark: SparkSession, table: str, application: str) -> dict[int, str]:
    """The input digests of the job's newest micro-batches in the table."""
    from delta.tables import DeltaTable

    if not DeltaTable.isDeltaTable(spark, table):
        return {}
    history = DeltaTable.forPath(spark, table).history(_COMMITS)
    texts = [row.userMetadata for row in history.select("userMetadata").collect()]
    commits = [found for found in map(_commit, texts) if found.get("txnAppId") == application]
    return {int(commit["txnVersion"]): commit["input"] for commit in commits}


def _commit(user_metadata: str | None) -> dict[str, str]:
    """The metadata of a commit of this module. Other writers may store anything there."""
    try:
        found = json.loads(user_metadata or "")
    except ValueError:
        return {}
    return found if isinstance(found, dict) and "input" in found else {}
