"""Driver. The options that make a batch write in `foreachBatch` idempotent (design/jobs.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from spark_eos.errors import OptionError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Spark sets this property in the thread of a streaming query, which also calls the function.
_QUERY_ID: Final = "sql.streaming.queryId"


def txn_options(
    batch: DataFrame, batch_id: int, *, name: str, query_id: str | None = None
) -> dict[str, str]:
    """`txnAppId` and `txnVersion` for the write of a micro-batch in `foreachBatch`.

    `name` identifies one write of the query: each topic needs its own. Only Spark Connect needs
    `query_id`, which is in the checkpoint, because it does not show the running query.
    """
    if not name:
        raise OptionError("txn_options: name is empty. Give each write of the query a name")
    return {
        "txnAppId": txn_app_id(name, query_id or _running_query_id(batch)),
        "txnVersion": str(batch_id),
    }


def txn_app_id(name: str, query_id: str) -> str:
    """The id of an application whose versions are the micro-batches of one checkpoint."""
    return f"{name}:{query_id}"


def _running_query_id(batch: DataFrame) -> str:
    # Spark Connect has no context, and raises an AttributeError.
    context = getattr(batch.sparkSession, "sparkContext", None)
    if context is None:
        raise OptionError(
            "txn_options: Spark Connect does not show which query is running. Pass query_id, the id"
            " of the query's checkpoint:"
            " batch.sparkSession.read.json(f'{checkpointLocation}/metadata').first()['id']"
        )
    query_id = context.getLocalProperty(_QUERY_ID)
    if query_id is None:
        raise OptionError(
            "txn_options: no streaming query runs in this thread. Call it inside of the function"
            " that foreachBatch is given, and not in another thread. Or pass query_id: the file"
            " 'metadata' in the query's checkpointLocation has it"
        )
    return str(query_id)
