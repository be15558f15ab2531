"""Driver, inside of a `foreachBatch` function: the options that make its batch write idempotent.

Spark numbers the micro-batches of each checkpoint from 0. Under a plain name the first batches of a
new checkpoint would have the versions of the old one. So the name of the application contains the
id of the query, which is the id of its checkpoint.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from spark_eos.errors import OptionError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Spark sets it for the thread that runs a streaming query, and calls the function in that thread.
_QUERY_ID: Final = "sql.streaming.queryId"


def txn_options(
    batch: DataFrame, batch_id: int, *, name: str, query_id: str | None = None
) -> dict[str, str]:
    """`txnAppId` and `txnVersion` for the write of a micro-batch in `foreachBatch`.

    `name` tells the writes of a query apart: each topic needs one of its own. `query_id` is needed
    only where the running query cannot be asked, as in Spark Connect: it is in the checkpoint.
    """
    if not name:
        raise OptionError("txn_options: name is empty. Give each write of the query a name")
    return {
        "txnAppId": txn_app_id(name, query_id or _running_query_id(batch)),
        "txnVersion": str(batch_id),
    }


def txn_app_id(name: str, query_id: str) -> str:
    """The name of an application whose versions are the micro-batches of one checkpoint."""
    return f"{name}:{query_id}"


def _running_query_id(batch: DataFrame) -> str:
    # Spark Connect has no context, and raises an AttributeError.
    context = getattr(batch.sparkSession, "sparkContext", None)
    if context is None:
        raise OptionError(
            "txn_options: Spark Connect does not tell which query is running. Pass query_id, the id"
            " of the query's checkpoint:"
            " batch.sparkSession.read.json(f'{checkpointLocation}/metadata').first()['id']"
        )
    query_id = context.getLocalProperty(_QUERY_ID)
    if query_id is None:
        raise OptionError(
            "txn_options: no streaming query runs in this thread. Call it inside of the function"
            " that foreachBatch is given, and not in another thread; or pass query_id, the id in"
            " the file 'metadata' of the query's checkpointLocation"
        )
    return str(query_id)
