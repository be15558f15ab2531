"""Driver, before an append: may these rows follow what the log holds? Pure.

Checked against the rows of the query's last batch, which are known anyway. What is older is ended:
a batch is only decided together with, or after, the end of the one before.
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
    where = f"batch {batch_id} of query {tail.query_id}"
    if not records:
        raise CorruptLogError(f"{where}: there is nothing to append")
    if tail.batch_id is not None and batch_id < tail.batch_id:
        raise CorruptLogError(
            f"{where}: the log is at batch {tail.batch_id} already. The checkpoint is older than"
            " the transaction log: restore the one that belongs to it"
        )
    allowed = {batch_id, tail.batch_id}
    for record in records:
        if record.query_id != tail.query_id or record.batch_id not in allowed:
            raise CorruptLogError(
                f"{where}: a row of batch {record.batch_id} of query {record.query_id} cannot be"
                " appended with it"
            )
        if record.entry_timestamp <= tail.newest:
            raise CorruptLogError(
                f"{where}: the entry timestamp {record.entry_timestamp} is not after the newest in"
                f" the log, {tail.newest}"
            )
    _check_transitions(tail, batch_id, records, where)


def _check_transitions(
    tail: Tail, batch_id: int, records: Sequence[TransactionRecord], where: str
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
            raise CorruptLogError(f"{where}: {key}: {error}") from error
        newest[key] = record
    left = [r for r in newest.values() if r.state.is_pending and r.batch_id != batch_id]
    if left:
        raise CorruptLogError(
            f"{where}: {left[0].identity.transactional_id} is in {left[0].state.wire_name} for"
            f" batch {left[0].batch_id}, and that batch has to end first"
        )


def _check_step(
    before: TransactionRecord | None, record: TransactionRecord, *, counts_again: bool
) -> None:
    """A row continues its transaction, or starts one that is open in Kafka and new to the log.

    A Kafka cluster that was restored from a backup gives epochs of the last batch once more.
    """
    is_new = counts_again and before is not None and before.batch_id != record.batch_id
    if before is not None and _is_same_transaction(before, record) and not is_new:
        if record.state.is_pending:
            raise CorruptLogError(
                f"it is {before.state.wire_name} already, and one epoch is one transaction:"
                f" {record.state.wire_name} cannot follow"
            )
        transition(before.state, record.state)
        return
    if before is not None and before.state is not TransactionState.DEAD:
        transition(before.state, TransactionState.ONGOING)
    transition(TransactionState.ONGOING, record.state)


def _is_same_transaction(before: TransactionRecord, record: TransactionRecord) -> bool:
    """Producer ids are unique per cluster only: a query that moved to another may get one again."""
    clusters = {before.cluster_id, record.cluster_id} - {None}
    return before.identity == record.identity and len(clusters) <= 1
