"""May a batch be written, and is the batch that runs again the batch that was logged? Pure.

Spark runs a batch again until it has written `commits/<batch id>`, and a checkpoint can be edited
or restored by hand. So each task asks what to do with its rows, and the driver compares, before
it decides or skips, what ran now with what is in the log.
"""

from collections.abc import Sequence
from typing import Final

from spark_eos._protocol.transactions.batch import LoggedBatch, TaskResult
from spark_eos._protocol.transactions.transaction import TransactionRecord
from spark_eos.errors import NonDeterministicReplayError

# The version of records whose input digest has the files of a file source in it.
_FILES_SINCE: Final = 3


def check_same_batch(
    logged: LoggedBatch | None,
    *,
    query_id: str,
    batch_id: int,
    input_digest: str,
    older_input_digest: str,
    results: Sequence[TaskResult],
) -> None:
    """Raise unless a batch whose rows are visible already is the one that just ran again."""
    where = f"batch {batch_id} of query {query_id}"
    if logged is None:
        if any(result.records for result in results):
            raise NonDeterministicReplayError(
                f"{where} ran again with rows, but the log has no record of it and is already past"
                " it: the checkpoint is older than the transaction log. Restore the checkpoint that"
                " belongs to this log, or start with a new checkpointLocation"
            )
        return
    # A pending row counts: recovery has completed it, and its row rides on the next decision.
    committed = logged.committed
    if not all(is_same_input(record, input_digest, older_input_digest) for record in committed):
        raise NonDeterministicReplayError(
            f"{where} is committed, and ran again with another range of source offsets or other"
            " files: the checkpoint was changed by hand, or is older than the transaction log."
            " Nothing was written now. Restore the newest checkpoint of this query, or start with a"
            " new checkpointLocation and startingOffsets behind what was written"
        )


def is_same_input(record: TransactionRecord, input_digest: str, older_input_digest: str) -> bool:
    """Whether a row of the log has this input. Up to version 2 the digest has no files in it."""
    has_files = record.version >= _FILES_SINCE
    return record.input_digest == (input_digest if has_files else older_input_digest)


def check_same_partitions(logged: LoggedBatch, results: Sequence[TaskResult]) -> None:
    """Raise unless the committed partitions of a torn batch came back with the same rows."""
    by_partition = {result.partition: result for result in results}
    for record in logged.committed:
        if record.sink_partition is None:
            continue
        replayed = by_partition.get(record.sink_partition)
        if (
            record.sink_partitions != len(results)
            or replayed is None
            or replayed.digest != record.digest
        ):
            raise NonDeterministicReplayError(
                f"batch {logged.batch_id} of query {logged.query_id} is committed in part, and"
                f" ran again with other rows in partition {record.sink_partition} (logged: digest"
                f" {record.digest} in {record.sink_partitions} partitions; now:"
                f" {replayed.digest if replayed else 'none'} in {len(results)}). Writing the lost"
                " partitions could lose or double rows. If the query or its option topic was"
                " changed, start it once as it was. Else compare the topic with the source, write"
                " what is missing by hand, and start with a new checkpointLocation"
            )
