"""Pure. Step 5: what must hold before a batch is decided, and the rows that decide it."""

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
    """The time that must be left, so that EndTxn arrives before the transaction times out."""
    return min(10_000, timeout_ms // 10)


def is_stale(
    batch: RunningBatch, descriptions: Mapping[str, TransactionDescription | None]
) -> bool:
    """Whether a coordinator's answer is older than the end of the tasks (design/decision.md)."""
    for _, prepared in batch.transactions:
        identity = prepared.identity
        found = descriptions[identity.transactional_id]
        if found is None or found.identity.producer_id != identity.producer_id:
            continue
        epoch = found.identity.producer_epoch
        # Epochs of a producer id only grow, and a prepared transaction does not become Empty again.
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
    """Raise unless each transaction is as its task left it, with time to spare."""
    again = "run the write again" if batch.is_batch_write else "start the query again"
    for _, prepared in batch.transactions:
        identity = prepared.identity
        name = identity.transactional_id
        fields = {"transactional_id": name, "batch_id": batch.batch_id, "again": again}
        found = descriptions[name]
        if found is None or found.identity != identity:
            raise TransactionLostError(
                "{transactional_id} of batch {batch_id} was prepared at epoch {epoch} and is now"
                " {now}. It timed out, or another attempt or driver took the id over. Nothing was"
                " decided, so {again}",
                epoch=identity.producer_epoch,
                now="not there" if found is None else f"at epoch {found.identity.producer_epoch}",
                **fields,
            )
        if found.state is not TransactionState.ONGOING:
            raise TransactionLostError(
                "{transactional_id} of batch {batch_id} is {state}, not Ongoing: it timed out"
                " before the decision. Raise {option}. Nothing was decided, so {again}",
                option="kafka.transaction.timeout.ms",
                state=found.state.wire_name,
                **fields,
            )
        started = found.start_time_ms
        # The smaller age counts, so a wrong clock stops no query (docs/design/decision.md).
        age = age_at_most_ms if started is None else min(age_at_most_ms, now_ms - started)
        if found.timeout_ms - age < spare_ms(found.timeout_ms):
            raise TransactionLostError(
                "{transactional_id} of batch {batch_id} is {age_s:.1f} s old and times out after"
                " {timeout_s:.1f} s: too close to decide. Raise {option} or make batches smaller."
                " Nothing was decided, so {again}",
                option="kafka.transaction.timeout.ms",
                age_s=age / 1000,
                timeout_s=found.timeout_ms / 1000,
                **fields,
            )


def check_same_topics(batch: RunningBatch, replaced: Mapping[str, str | None]) -> None:
    """Raise if a topic is not the one that the tasks wrote to."""
    ids = {pair for _, t in batch.transactions for pair in t.topic_ids}
    twice = [topic for topic, topic_id in ids if batch.topic_ids[topic] != topic_id]
    for topic in sorted([*replaced, *twice]):
        gone = replaced.get(topic, "") is None
        raise TransactionLostError(
            "topic '{topic}' {now}: it was deleted while batch {batch_id} of query {query_id} was"
            " written to it. Nothing was decided. Create the topic if it is missing, and start the"
            " query again: the whole batch is written again",
            topic=topic,
            now="does not exist any more" if gone else "has another id now",
            batch_id=batch.batch_id,
            query_id=batch.query_id,
        )


def decision_rows(
    batch: RunningBatch,
    last: LoggedBatch | None,
    descriptions: Mapping[str, TransactionDescription | None],
    at: datetime,
) -> tuple[TransactionRecord, ...]:
    """The rows of the Delta commit that decides the batch and completes the batch before it."""
    rows = [
        replace(
            _ongoing(batch, result, prepared).moved_to(TransactionState.PREPARE_COMMIT, at),
            start_timestamp=_start(descriptions[prepared.identity.transactional_id]),
        )
        for result, prepared in batch.transactions
    ]
    if last is None or last.batch_id < batch.batch_id:
        return (*rows, *_completion_before(batch, last, at))
    # An id that lost its rows and has none now becomes Empty. Else it would be lost a second time.
    written = {row.identity.transactional_id for row in rows}
    emptied = (
        replace(record.moved_to(TransactionState.EMPTY, at), partitions=())
        for record in last.records
        if record.state is TransactionState.COMPLETE_ABORT
        and record.identity.transactional_id not in written
    )
    return (*rows, *emptied)


def _completion_before(
    batch: RunningBatch, last: LoggedBatch | None, at: datetime
) -> tuple[TransactionRecord, ...]:
    if last is None or last.batch_id >= batch.batch_id:
        return ()
    # A version of an application that was aborted as a whole may be left out.
    return () if batch.is_batch_write and last.is_aborted else completion_rows(last, at)


def completion_rows(last: LoggedBatch, at: datetime) -> tuple[TransactionRecord, ...]:
    """The completion of a batch that Spark has gone past, so all of it must be committed."""
    lost = [r for r in last.records if r.state in ABORTED]
    if lost:
        raise CorruptLogError(
            "batch {batch_id} of query {query_id} was aborted in partition {partition}, but Spark"
            " went past it. Another sink or another deliveryGuarantee wrote it, or the checkpoint"
            " and the transaction log do not belong together. Write what is missing in the topic"
            " by hand, and start with a new checkpointLocation",
            batch_id=last.batch_id,
            query_id=last.query_id,
            partition=lost[0].sink_partition,
        )
    return tuple(r.moved_to(TransactionState.COMPLETE_COMMIT, at) for r in last.decided)


def abort_rows(
    batch: RunningBatch, last: LoggedBatch | None, at: datetime
) -> tuple[TransactionRecord, ...]:
    """The rows after which the batch cannot be decided with these transactions any more."""
    rows = [
        _ongoing(batch, result, prepared).moved_to(TransactionState.PREPARE_ABORT, at)
        for result, prepared in batch.transactions
    ]
    return (*rows, *_completion_before(batch, last, at))


def _ongoing(
    batch: RunningBatch, result: TaskResult | None, prepared: PreparedTransaction
) -> TransactionRecord:
    """The transaction as its task left it. It is never logged: no record means abort."""
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
