"""The values that travel: one type for each stage in the life of a transaction.

`PreparedTransaction` is made by a task, flushed and still open; `TransactionRecord` is a row of the
log; `TransactionDescription` is what the coordinator says. They are distinct on purpose: what was
meant, what was decided and what is must be compared, never mixed up.
"""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from spark_eos._protocol.offsets.topic_partition import PartitionOffsets
from spark_eos._protocol.transactions.state import TransactionState, transition

RECORD_VERSION: Final = 3

# Topics with the ids that they had before they were written to, in order. A topic that was deleted
# and created again has another id.
TopicIds = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerIdentity:
    """One transaction, for the coordinator: one epoch is used for one transaction only."""

    transactional_id: str
    producer_id: int
    producer_epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedTransaction:
    """A transaction that is flushed, every delivery report checked, and open.

    A task's, or the driver's own, which holds no records but the offsets of a consumer group.
    """

    identity: ProducerIdentity
    transaction_timeout_ms: int
    partitions: tuple[PartitionOffsets, ...]
    topic_ids: TopicIds = ()
    group_id: str | None = None
    source_offsets: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionDescription:
    """The coordinator's answer to DescribeTransactions, for one id that it knows."""

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
    cluster_id: str | None = None  # not known of a row of version 1
    topic_ids: TopicIds = ()  # not known of a row of version 2
    acknowledged: str | None = None  # what a person has accepted, see docs/guarantees.md
    version: int = RECORD_VERSION

    @property
    def is_note(self) -> bool:
        """Whether it only says what a person has accepted, and belongs to no transaction."""
        return self.acknowledged is not None and self.state is TransactionState.EMPTY

    def moved_to(self, target: TransactionState, at: datetime) -> "TransactionRecord":
        """The row that says that this transaction went on to `target`."""
        return replace(self, state=transition(self.state, target), entry_timestamp=at)
