"""Pure. One type for each stage of a transaction: intent, decision and reality stay apart."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from spark_eos._protocol.offsets.topic_partition import PartitionOffsets
from spark_eos._protocol.transactions.state import TransactionState, transition

RECORD_VERSION: Final = 3

# In order: topics with their ids before the write. A topic that is created again has another id.
TopicIds = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerIdentity:
    """One transaction, for the coordinator: an epoch is used for one transaction only."""

    transactional_id: str
    producer_id: int
    producer_epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedTransaction:
    """An open transaction, flushed and checked: a task's, or the driver's with group offsets."""

    identity: ProducerIdentity
    transaction_timeout_ms: int
    partitions: tuple[PartitionOffsets, ...]
    topic_ids: TopicIds = ()
    group_id: str | None = None
    source_offsets: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionDescription:
    """The coordinator's answer to DescribeTransactions for one id that it knows."""

    identity: ProducerIdentity
    state: TransactionState
    timeout_ms: int
    start_time_ms: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionRecord:
    """One row of the log: a transition of one transaction of one micro-batch."""

    identity: ProducerIdentity
    transaction_timeout_ms: int
    state: TransactionState
    partitions: tuple[PartitionOffsets, ...]
    entry_timestamp: datetime
    start_timestamp: datetime | None
    query_id: str
    run_id: str
    batch_id: int
    sink_partition: int | None
    sink_partitions: int
    digest: str
    input_digest: str
    group_id: str | None = None
    source_offsets: str | None = None
    cluster_id: str | None = None  # None in rows of version 1
    topic_ids: TopicIds = ()  # empty in rows of version 2
    acknowledged: str | None = None  # the code of what a person has accepted
    version: int = RECORD_VERSION

    @property
    def is_note(self) -> bool:
        """Whether the row only keeps what a person has accepted. It belongs to no transaction."""
        return self.acknowledged is not None and self.state is TransactionState.EMPTY

    def moved_to(self, target: TransactionState, at: datetime) -> "TransactionRecord":
        """The row for the transition of this transaction to `target`."""
        return replace(self, state=transition(self.state, target), entry_timestamp=at)
