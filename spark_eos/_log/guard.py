"""Driver. Check whether rows may be appended to the log. Pure.

The rows of the query's last batch are enough for that. All older batches have ended: a batch is
decided together with the end of the batch before it, or after that end.
"""

from collections.abc import Sequence

from spark_eos._log.record import entry_order
from spark_eos._log.tail import Tail
from spark_eos._protocol.transactions.acknowledgement import Risk
from spark_eos._protocol.transactions.state import TransactionState, transition
from spark_eos._protocol.transactions.transaction import TransactionRecord
from spark_eos.errors import CorruptLogError


def check_append(tail: Tail, batch_id: int, records: Sequence[TransactionRecord]) -> None:
    """Raise CorruptLogError unless `records` may be appended for `batch_id` after `tail`."""
    fields: dict[str, object] = {"batch_id": batch_id, "query_id": tail.query_id}
    if not records:
        raise CorruptLogError(
            "batch {batch_id} of query {query_id}: there is nothing to append", **fields
        )
    if tail.batch_id is not None and batch_id < tail.batch_id:
        raise CorruptLogError(
            "batch {batch_id} of query {query_id}: the log is at batch {last_batch_id} already. The"
            " checkpoint is older than the transaction log. Restore the checkpoint that belongs to"
            " the log",
            last_batch_id=tail.batch_id,
            **fields,
        )
    for record in records:
        if record.query_id != tail.query_id or record.batch_id not in {batch_id, tail.batch_id}:
            raise CorruptLogError(
                "batch {batch_id} of query {query_id}: a row of batch {row_batch_id} of query"
                " {row_query_id} cannot be appended with it",
                row_batch_id=record.batch_id,
                row_query_id=record.query_id,
                **fields,
            )
        if record.entry_timestamp <= tail.newest:
            raise CorruptLogError(
                "batch {batch_id} of query {query_id}: the entry timestamp {at} is not after the"
                " newest in the log, {newest}",
                at=record.entry_timestamp,
                newest=tail.newest,
                **fields,
            )
    _check_transitions(tail, batch_id, records, fields)


def _check_transitions(
    tail: Tail, batch_id: int, records: Sequence[TransactionRecord], fields: dict[str, object]
) -> None:
    known = tail.batch.records if tail.batch is not None else ()
    newest = {record.identity.transactional_id: record for record in known}
    counts_again = any(Risk.OLDER_KAFKA.is_accepted_by(record) for record in known)
    for record in sorted(records, key=entry_order):
        if record.is_note:
            continue
        key = record.identity.transactional_id
        try:
            _check_step(newest.get(key), record, counts_again=counts_again)
        except CorruptLogError as error:
            raise CorruptLogError(
                "batch {batch_id} of query {query_id}: {transactional_id}: {cause}",
                transactional_id=key,
                cause=error,
                **fields,
            ) from error
        newest[key] = record
    left = [r for r in newest.values() if r.state.is_pending and r.batch_id != batch_id]
    if left:
        raise CorruptLogError(
            "batch {batch_id} of query {query_id}: {transactional_id} is in {state} for batch"
            " {pending_batch_id}, and that batch has to end first",
            transactional_id=left[0].identity.transactional_id,
            state=left[0].state.wire_name,
            pending_batch_id=left[0].batch_id,
            **fields,
        )


def _check_step(
    before: TransactionRecord | None, record: TransactionRecord, *, counts_again: bool
) -> None:
    """A row continues its transaction, or starts one that is open in Kafka and new to the log."""
    # A Kafka cluster that was restored from a backup gives the epochs of the last batch again.
    is_new = counts_again and before is not None and before.batch_id != record.batch_id
    if before is not None and _is_same_transaction(before, record) and not is_new:
        if record.state.is_pending:
            raise CorruptLogError(
                "it is {now} already, and one epoch is one transaction: {target} cannot follow",
                now=before.state.wire_name,
                target=record.state.wire_name,
            )
        transition(before.state, record.state)
        return
    if before is not None and before.state is not TransactionState.DEAD:
        transition(before.state, TransactionState.ONGOING)
    transition(TransactionState.ONGOING, record.state)


def _is_same_transaction(before: TransactionRecord, record: TransactionRecord) -> bool:
    """Producer ids are unique per cluster only: another cluster may give the same one."""
    clusters = {before.cluster_id, record.cluster_id} - {None}
    return before.identity == record.identity and len(clusters) <= 1
