"""Pure. Step 5: is the batch that runs again the logged one (docs/design/recovery.md)?"""

from collections.abc import Sequence
from typing import Final

from spark_eos._protocol.transactions.batch import LoggedBatch, TaskResult
from spark_eos._protocol.transactions.transaction import TransactionRecord
from spark_eos.errors import NonDeterministicReplayError

# The version of records whose input digest contains the files of a file source.
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
    """Raise unless the batch that ran again is the one whose rows are visible already."""
    fields = {"batch_id": batch_id, "query_id": query_id}
    if logged is None:
        if any(result.records for result in results):
            raise NonDeterministicReplayError(
                "batch {batch_id} of query {query_id} ran again with rows, but the log is past it"
                " and has no record of it: the checkpoint is older than the transaction log."
                " Restore the checkpoint that belongs to this log, or start with a new"
                " checkpointLocation",
                **fields,
            )
        return
    # A pending row counts: recovery has completed it, and the next decision logs that.
    committed = logged.committed
    if not all(is_same_input(record, input_digest, older_input_digest) for record in committed):
        raise NonDeterministicReplayError(
            "batch {batch_id} of query {query_id} is committed, but ran again with another range of"
            " source offsets or other files. The checkpoint was changed by hand, or is older than"
            " the transaction log. Nothing was written now. Restore the newest checkpoint of this"
            " query, or start with a new checkpointLocation and startingOffsets after what was"
            " written",
            **fields,
        )


def is_same_input(record: TransactionRecord, input_digest: str, older_input_digest: str) -> bool:
    """Whether a row of the log has this input. Up to version 2 the digest has no files."""
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
                "batch {batch_id} of query {query_id} is committed in part, but ran again with"
                " other rows in partition {record.sink_partition} (logged: digest {record.digest}"
                " in {record.sink_partitions} partitions; now: {now} in {partitions}). Writing the"
                " lost partitions could lose or double rows. If the query or its option topic was"
                " changed, start it once as it was. Else compare the topic with the source, write"
                " what is missing by hand, and start with a new checkpointLocation",
                batch_id=logged.batch_id,
                query_id=logged.query_id,
                record=record,
                now=replayed.digest if replayed else "none",
                partitions=len(results),
            )
