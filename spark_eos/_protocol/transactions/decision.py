"""What must hold before a batch is decided, and the rows that decide it. Pure."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime

from spark_eos._protocol.transactions.batch import ABORTED, LoggedBatch, RunningBatch, TaskResult
from spark_eos._protocol.transactions.state import TransactionState
from spark_eos._protocol.transactions.transaction import (
    PreparedTransaction,
    ProducerIdentity,
    TransactionDescription,
    TransactionRecord,
)
from spark_eos.errors import CorruptLogError, TransactionLostError


def spare_ms(timeout_ms: int) -> int:
    """How much of a transaction's time must be left, so that EndTxn comes before the time-out."""
    return min(10_000, timeout_ms // 10)


def is_stale(
    batch: RunningBatch, descriptions: Mapping[str, TransactionDescription | None]
) -> bool:
    """Whether a coordinator tells of a time before the tasks ended.

    One that was frozen and replaced answers from what it knew then, until it learns of its
    successor. Epochs of a producer id only grow, and a prepared transaction is never Empty again.
    """
    for _, prepared in batch.transactions:
        identity = prepared.identity
        found = descriptions[identity.transactional_id]
        if found is None or found.identity.producer_id != identity.producer_id:
            continue
        epoch = found.identity.producer_epoch
        is_empty = found.state is TransactionState.EMPTY and epoch == identity.producer_epoch
        if epoch < identity.producer_epoch or is_empty:
            return True
    return False


def is_as_left(identity: ProducerIdentity, found: TransactionDescription | None) -> bool:
    """Whether a transaction is as its task left it."""
    return (
        found is not None and found.identity == identity and found.state is TransactionState.ONGOING
    )


def check_prepared(
    batch: RunningBatch,
    descriptions: Mapping[str, TransactionDescription | None],
    *,
    now_ms: float,
    age_at_most_ms: float,
) -> None:
    """Raise unless each transaction is as its task left it, with time to spare.

    `age_at_most_ms` is measured on one clock; the start time is on the broker's. The smaller of the
    two ages counts, so that a clock that is wrong does not stop a query that is right. Too small an
    age costs nothing but a recovery.
    """
    again = "the batch runs again when the query is started"
    if batch.is_batch_write:
        again = "run the write again"
    for _, prepared in batch.transactions:
        identity = prepared.identity
        name = f"{identity.transactional_id} of batch {batch.batch_id}"
        found = descriptions[identity.transactional_id]
        if found is None or found.identity != identity:
            now = "not there" if found is None else f"at epoch {found.identity.producer_epoch}"
            raise TransactionLostError(
                f"{name} was prepared at epoch {identity.producer_epoch} and is now {now}: it timed"
                " out, or another attempt or driver took the id over. Nothing was decided;"
                f" {again}"
            )
        if found.state is not TransactionState.ONGOING:
            raise TransactionLostError(
                f"{name} is {found.state.wire_name}, not Ongoing: it timed out before the decision"
                f" (raise kafka.transaction.timeout.ms). Nothing was decided; {again}"
            )
        started = found.start_time_ms
        age = age_at_most_ms if started is None else min(age_at_most_ms, now_ms - started)
        if found.timeout_ms - age < spare_ms(found.timeout_ms):
            raise TransactionLostError(
                f"{name} is {age / 1000:.1f} s old and times out after"
                f" {found.timeout_ms / 1000:.1f} s: too close to decide. Raise"
                " kafka.transaction.timeout.ms or make batches smaller. Nothing was decided;"
                f" {again}"
            )


def check_same_topics(batch: RunningBatch, replaced: Mapping[str, str | None]) -> None:
    """Raise where a topic is not the one that the tasks wrote to."""
    ids = {pair for _, t in batch.transactions for pair in t.topic_ids}
    twice = [topic for topic, topic_id in ids if batch.topic_ids[topic] != topic_id]
    for topic in sorted([*replaced, *twice]):
        now = "does not exist any more" if replaced.get(topic, "") is None else "has another id now"
        raise TransactionLostError(
            f"topic '{topic}', which batch {batch.batch_id} of query {batch.query_id} was written"
            f" to, {now}: it was deleted while the batch ran. Nothing was decided. Create the topic"
            " if it is missing, and start the query again: the batch is written whole to the topic"
            " that is there then"
        )


def decision_rows(
    batch: RunningBatch,
    last: LoggedBatch | None,
    descriptions: Mapping[str, TransactionDescription | None],
    at: datetime,
) -> tuple[TransactionRecord, ...]:
    """The rows of the one Delta commit that decides the batch.

    `PrepareCommit` for each of its transactions, and the completion of the batch before it. Where
    the same batch is decided again, an id that lost its rows and has none now becomes `Empty`, so
    that it is not taken for lost a second time.
    """
    rows = [
        replace(
            _ongoing(batch, result, prepared).moved_to(TransactionState.PREPARE_COMMIT, at),
            start_timestamp=_start(descriptions[prepared.identity.transactional_id]),
        )
        for result, prepared in batch.transactions
    ]
    if last is None:
        return tuple(rows)
    if last.batch_id < batch.batch_id:
        return (*rows, *_completion_before(batch, last, at))
    written = {row.identity.transactional_id for row in rows}
    emptied = (
        replace(record.moved_to(TransactionState.EMPTY, at), partitions=())
        for record in last.records
        if record.state is TransactionState.COMPLETE_ABORT
        and record.identity.transactional_id not in written
    )
    return (*rows, *emptied)


def _completion_before(
    batch: RunningBatch, last: LoggedBatch, at: datetime
) -> tuple[TransactionRecord, ...]:
    """The completion of the batch before, which rides on this one's rows.

    Nobody owes a version of an application: one that failed as a whole may be left out.
    """
    if batch.is_batch_write and last.is_aborted:
        return ()
    return completion_rows(last, at)


def completion_rows(last: LoggedBatch, at: datetime) -> tuple[TransactionRecord, ...]:
    """The completion of a batch that Spark has gone past: all of it is committed."""
    lost = [r for r in last.records if r.state in ABORTED]
    if lost:
        raise CorruptLogError(
            f"batch {last.batch_id} of query {last.query_id} was aborted in partition"
            f" {lost[0].sink_partition}, and Spark went past it: another sink or another"
            " deliveryGuarantee wrote it, or the checkpoint and the transaction log do not belong"
            " together. See whether its rows are in the topic, write what is missing by hand, and"
            " start with a new checkpointLocation"
        )
    return tuple(r.moved_to(TransactionState.COMPLETE_COMMIT, at) for r in last.decided)


def abort_rows(
    batch: RunningBatch, last: LoggedBatch | None, at: datetime
) -> tuple[TransactionRecord, ...]:
    """The rows after which the batch cannot be decided any more with these transactions."""
    rows = [
        _ongoing(batch, result, prepared).moved_to(TransactionState.PREPARE_ABORT, at)
        for result, prepared in batch.transactions
    ]
    if last is None or last.batch_id >= batch.batch_id:
        return tuple(rows)
    return (*rows, *_completion_before(batch, last, at))


def _ongoing(
    batch: RunningBatch, result: TaskResult | None, prepared: PreparedTransaction
) -> TransactionRecord:
    """The transaction as its task left it. Not a row of the log: no record means abort."""
    return TransactionRecord(
        identity=prepared.identity,
        transaction_timeout_ms=prepared.transaction_timeout_ms,
        state=TransactionState.ONGOING,
        partitions=prepared.partitions,
        entry_timestamp=datetime.min.replace(tzinfo=UTC),
        start_timestamp=None,
        query_id=batch.query_id,
        run_id=batch.run_id,
        batch_id=batch.batch_id,
        sink_partition=None if result is None else result.partition,
        sink_partitions=batch.sink_partitions,
        digest="" if result is None else result.digest,
        input_digest=batch.input_digest,
        topic_ids=prepared.topic_ids,
        group_id=prepared.group_id,
        source_offsets=prepared.source_offsets,
        cluster_id=batch.cluster_id,
    )


def _start(found: TransactionDescription | None) -> datetime | None:
    if found is None or found.start_time_ms is None:
        return None
    return datetime.fromtimestamp(found.start_time_ms / 1000, UTC)
