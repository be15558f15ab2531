"""Values for tests of the protocol."""

from datetime import UTC, datetime, timedelta

from spark_eos._protocol.offsets.topic_partition import PartitionOffsets
from spark_eos._protocol.transactions.batch import LoggedBatch, RunningBatch, TaskResult
from spark_eos._protocol.transactions.state import TransactionState
from spark_eos._protocol.transactions.transaction import (
    PreparedTransaction,
    ProducerIdentity,
    TransactionDescription,
    TransactionRecord,
)

QUERY = "0f9b7a52-64b5-4f0c-9d1e-2a5d0e6f7a81"
T0 = datetime(2026, 1, 1, tzinfo=UTC)


def at(seconds):
    return T0 + timedelta(seconds=seconds)


def identity(partition=0, epoch=1):
    return ProducerIdentity(
        transactional_id=f"p-{QUERY}-{partition}", producer_id=100 + partition, producer_epoch=epoch
    )


def record(partition=0, state=TransactionState.PREPARE_COMMIT, **changes):
    values = {
        "identity": identity(partition, changes.pop("epoch", 1)),
        "transaction_timeout_ms": 60_000,
        "state": state,
        "partitions": (
            PartitionOffsets(topic="t", partition=0, first_offset=5, last_offset=9, records=5),
        ),
        "entry_timestamp": T0,
        "start_timestamp": None,
        "query_id": QUERY,
        "run_id": "run-1",
        "batch_id": 7,
        "sink_partition": partition,
        "sink_partitions": 4,
        "digest": f"digest-{partition}",
        "input_digest": "input-7",
    }
    return TransactionRecord(**(values | changes))


def logged(*records, batch_id=7):
    return LoggedBatch(query_id=QUERY, batch_id=batch_id, records=tuple(records))


def result(partition=0, *, rows=5, digest=None, transaction=True, epoch=1):
    prepared = PreparedTransaction(
        identity=identity(partition, epoch), transaction_timeout_ms=60_000, partitions=()
    )
    return TaskResult(
        partition=partition,
        records=rows,
        digest=digest or f"digest-{partition}",
        transaction=prepared if transaction else None,
    )


def running(*results, batch_id=8):
    return RunningBatch(
        query_id=QUERY,
        run_id="run-2",
        batch_id=batch_id,
        input_digest=f"input-{batch_id}",
        sink_partitions=len(results),
        results=tuple(results),
    )


def description(partition=0, state=TransactionState.ONGOING, epoch=1, start_ms=0, timeout=60_000):
    return TransactionDescription(
        identity=identity(partition, epoch),
        state=state,
        timeout_ms=timeout,
        start_time_ms=start_ms,
    )
