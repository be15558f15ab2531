"""Pure. A batch in each stage of its life.

| stage | who makes it |
|---|---|
| `RecoveredQuery`: what is left of the batch before | the planner |
| `TaskResult`: what one task found and did | a task |
| `RunningBatch`: the results, to be decided together | the commit worker |
| `LoggedBatch`: the newest row of each transaction | the log |
"""

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
    SKIP = "skip"  # read all rows, for the digest and for stateful operators above, and send none


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveredQuery:
    """The query as recovery left it, seen by the planner. Travels to the tasks, and with their
    results to the commit worker.
    """

    query_id: str
    last_batch_id: int | None = None
    newest_entry: datetime | None = None  # of the query in the log: it tells whether that moved
    driver: int | None = None  # the one that was started last
    committed_partitions: frozenset[int] = frozenset()
    committed_offsets: bool = False
    complete: bool = True
    rows_complete: bool = True  # what is left of the last batch is at most to move the group
    recovered_at: float = 0.0  # by the planner's monotonic clock; the batch's tasks start later

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
    """What one task of a batch found and did."""

    partition: int
    records: int
    digest: str
    transaction: PreparedTransaction | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningBatch:
    """The batch that the driver is about to decide."""

    query_id: str
    run_id: str
    batch_id: int
    input_digest: str
    sink_partitions: int
    results: tuple[TaskResult, ...]
    offsets: PreparedTransaction | None = None
    cluster_id: str | None = None
    is_batch_write: bool = False  # its batch id is the version of an application
    older_input_digest: str = ""  # as rows of version 2 have it; of a batch that runs again

    @property
    def transactions(self) -> tuple[tuple[TaskResult | None, PreparedTransaction], ...]:
        """Every open transaction, with the task that wrote it; the driver's own has none."""
        written = ((r, r.transaction) for r in self.results if r.transaction is not None)
        own = () if self.offsets is None else ((None, self.offsets),)
        return (*written, *own)

    @property
    def written(self) -> set[TopicPartition]:
        """The partitions that it wrote to."""
        return {p.topic_partition for _, t in self.transactions for p in t.partitions}

    @property
    def topic_ids(self) -> dict[str, str]:
        """The topics that it wrote to, as far as their ids are known. Of a topic that was replaced
        between two tasks one id is told; the other one does not fit either.
        """
        return dict(pair for _, t in self.transactions for pair in t.topic_ids)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedBatch:
    """The newest row per transactional id, among the rows of one batch of one query."""

    query_id: str
    batch_id: int
    records: tuple[TransactionRecord, ...]

    @property
    def pending(self) -> tuple[TransactionRecord, ...]:
        """The transactions with a logged intent and no logged end."""
        return tuple(record for record in self.records if record.state.is_pending)

    @property
    def decided(self) -> tuple[TransactionRecord, ...]:
        """Those of them that are to be committed."""
        return tuple(r for r in self.records if r.state is TransactionState.PREPARE_COMMIT)

    @property
    def committed(self) -> tuple[TransactionRecord, ...]:
        """What was decided, whether or not its end is logged, and was not lost since."""
        return tuple(r for r in self.records if r.state in COMMITTED_STATES)

    @property
    def is_aborted(self) -> bool:
        """Whether all of it that had rows was aborted. A tombstone is of one that ended well."""
        states = {record.state for record in self.records} - {TransactionState.EMPTY}
        return bool(states) and states <= ABORTED

    @property
    def is_whole(self) -> bool:
        """Whether nothing of it was aborted."""
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
        raise CorruptLogError(f"rows of several micro-batches where one was asked for: {batches}")
    ((query_id, batch_id),) = batches
    return LoggedBatch(
        query_id=query_id,
        batch_id=batch_id,
        records=tuple(newest[key] for key in sorted(newest)),
    )
