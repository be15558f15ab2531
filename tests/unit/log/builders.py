"""Rows for tests of the log: batches of a query as the sink logs them."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from spark_eos._log import TransactionLog
from spark_eos._protocol.offsets.topic_partition import PartitionOffsets
from spark_eos._protocol.transactions.state import TransactionState
from spark_eos._protocol.transactions.transaction import ProducerIdentity, TransactionRecord

QUERY = "11111111-1111-4111-8111-111111111111"
OTHER = "22222222-2222-4222-8222-222222222222"
RUN = "aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa"
START = datetime(2026, 1, 1, tzinfo=UTC)

PREPARE_COMMIT = TransactionState.PREPARE_COMMIT
COMPLETE_COMMIT = TransactionState.COMPLETE_COMMIT
COMPLETE_ABORT = TransactionState.COMPLETE_ABORT
DEAD = TransactionState.DEAD


def at(seconds: float) -> datetime:
    """A time, in seconds after the start."""
    return START + timedelta(seconds=seconds)


def row(
    batch_id: int,
    when: datetime,
    *,
    partition: int = 0,
    partitions: int = 1,
    state: TransactionState = PREPARE_COMMIT,
    query_id: str = QUERY,
    run_id: str = RUN,
    epoch: int | None = None,
) -> TransactionRecord:
    """One row. Each batch has an epoch of its own, as one epoch is one transaction."""
    return TransactionRecord(
        identity=ProducerIdentity(
            transactional_id=f"spark-eos-{query_id}-{partition}",
            producer_id=1_000 + partition,
            producer_epoch=batch_id % 30_000 if epoch is None else epoch,
        ),
        transaction_timeout_ms=60_000,
        state=state,
        partitions=(
            PartitionOffsets(
                topic="out",
                partition=partition,
                first_offset=batch_id * 10,
                last_offset=batch_id * 10 + 8,
                records=9,
            ),
        ),
        entry_timestamp=when,
        start_timestamp=when - timedelta(seconds=1),
        query_id=query_id,
        run_id=run_id,
        batch_id=batch_id,
        sink_partition=partition,
        sink_partitions=partitions,
        digest=f"{batch_id:08x}{partition:08x}",
        input_digest=f"{batch_id:016x}",
        cluster_id="cluster-1",
    )


def decision(
    log: TransactionLog,
    batch_id: int,
    *,
    partitions: int = 2,
    query_id: str = QUERY,
    run_id: str = RUN,
) -> list[TransactionRecord]:
    """What the sink logs for a batch: its decision and the end of the batch before."""
    when = log.next_timestamp(query_id)
    return [
        *completed(log, when, query_id=query_id),
        *(
            row(
                batch_id,
                when,
                partition=partition,
                partitions=partitions,
                query_id=query_id,
                run_id=run_id,
            )
            for partition in range(partitions)
        ),
    ]


def completed(
    log: TransactionLog, when: datetime, *, query_id: str = QUERY
) -> list[TransactionRecord]:
    """The end of whatever is pending in the query's last batch."""
    last = log.last_batch(query_id)
    pending = last.pending if last is not None else ()
    return [record.moved_to(COMPLETE_COMMIT, when) for record in pending]


def decide(
    log: TransactionLog,
    batch_ids: Iterable[int],
    *,
    partitions: int = 2,
    query_id: str = QUERY,
    run_id: str = RUN,
) -> list[TransactionRecord]:
    """Log batches one after the other; returns all rows written."""
    written = []
    for batch_id in batch_ids:
        rows = decision(log, batch_id, partitions=partitions, query_id=query_id, run_id=run_id)
        log.append(query_id, batch_id, rows)
        written += rows
    return written
