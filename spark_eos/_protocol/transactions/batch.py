"""Pure. A batch in each stage of its life: recovered, written by tasks, decided, and logged."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from spark_eos._protocol.offsets.topic_partition import TopicPartition
from spark_eos._protocol.transactions.state import COMMITTED_STATES, TransactionState
from spark_eos._protocol.transactions.transaction import PreparedTransaction, TransactionRecord
from spark_eos.errors import CorruptLogError

ABORTED = {TransactionState.PREPARE_ABORT, TransactionState.COMPLETE_ABORT}


class Action(Enum):
    """What a task does with its rows."""

    WRITE = "write"
    SKIP = "skip"  # read all rows, for the digest and for stateful operators, and send none


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveredQuery:
    """The query after recovery. It travels from the planner to the tasks and the commit worker."""

    query_id: str
    last_batch_id: int | None = None
    newest_entry: datetime | None = None  # of the query in the log: shows whether the log has moved
    driver: int | None = None  # the driver that was started last
    committed_partitions: frozenset[int] = frozenset()
    committed_offsets: bool = False
    complete: bool = True
    rows_complete: bool = True  # at most the group's offsets are still to be moved
    recovered_at: float = 0.0  # on the planner's monotonic clock; the batch's tasks start later

    def moves_offsets(self, batch_id: int) -> bool:
        """Whether the group's offsets are still to be moved to the end of `batch_id`."""
        return self.last_batch_id is None or (
            batch_id > self.last_batch_id
            or (batch_id == self.last_batch_id and not self.complete and not self.committed_offsets)
        )

    def action(self, batch_id: int, partition: int) -> Action:
        """What the task of `partition` in `batch_id` does."""
        if self.last_batch_id is None or batch_id > self.last_batch_id:
            return Action.WRITE
        if batch_id < self.last_batch_id or self.rows_complete:
            return Action.SKIP
        return Action.SKIP if partition in self.committed_partitions else Action.WRITE


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskResult:
    """What one task of a batch read and wrote. It travels to the commit worker."""

    partition: int
    records: int
    digest: str
    transaction: PreparedTransaction | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningBatch:
    """The batch that the commit worker is about to decide."""

    query_id: str
    run_id: str
    batch_id: int
    input_digest: str
    sink_partitions: int
    results: tuple[TaskResult, ...]
    offsets: PreparedTransaction | None = None
    cluster_id: str | None = None
    is_batch_write: bool = False  # its batch id is the version of an application
    older_input_digest: str = ""  # as in rows of version 2, for a batch that runs again

    @property
    def transactions(self) -> tuple[tuple[TaskResult | None, PreparedTransaction], ...]:
        """Every open transaction with the task that wrote it. The driver's own has no task."""
        written = ((r, r.transaction) for r in self.results if r.transaction is not None)
        own = () if self.offsets is None else ((None, self.offsets),)
        return (*written, *own)

    @property
    def written(self) -> set[TopicPartition]:
        """The partitions that it wrote to."""
        return {p.topic_partition for _, t in self.transactions for p in t.partitions}

    @property
    def topic_ids(self) -> dict[str, str]:
        """The known ids of the topics that it wrote to; one of both if a topic was replaced."""
        return dict(pair for _, t in self.transactions for pair in t.topic_ids)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedBatch:
    """The newest row per transactional id, of one batch of one query."""

    query_id: str
    batch_id: int
    records: tuple[TransactionRecord, ...]

    @property
    def pending(self) -> tuple[TransactionRecord, ...]:
        """The transactions with a logged intent but without a logged end."""
        return tuple(record for record in self.records if record.state.is_pending)

    @property
    def decided(self) -> tuple[TransactionRecord, ...]:
        """The pending transactions that are to be committed."""
        return tuple(r for r in self.records if r.state is TransactionState.PREPARE_COMMIT)

    @property
    def committed(self) -> tuple[TransactionRecord, ...]:
        """The decided transactions, with or without a logged end, except those that were lost."""
        return tuple(r for r in self.records if r.state in COMMITTED_STATES)

    @property
    def is_aborted(self) -> bool:
        """Whether everything with rows was aborted. A tombstone is of a batch that ended well."""
        states = {record.state for record in self.records} - {TransactionState.EMPTY}
        return bool(states) and states <= ABORTED

    @property
    def is_whole(self) -> bool:
        """Whether no transaction of it was aborted."""
        return not any(record.state in ABORTED for record in self.records)


def latest_batch(records: Iterable[TransactionRecord]) -> LoggedBatch | None:
    """Reduce the rows of one batch to the newest per transactional id, as log compaction does."""
    newest: dict[str, TransactionRecord] = {}
    for record in records:
        key = record.identity.transactional_id
        if key not in newest or newest[key].entry_timestamp < record.entry_timestamp:
            newest[key] = record
    if not newest:
        return None
    batches = {(record.query_id, record.batch_id) for record in newest.values()}
    if len(batches) > 1:
        raise CorruptLogError("rows of several batches instead of one: {batches}", batches=batches)
    ((query_id, batch_id),) = batches
    return LoggedBatch(
        query_id=query_id,
        batch_id=batch_id,
        records=tuple(newest[key] for key in sorted(newest)),
    )
