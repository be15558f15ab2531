"""A micro-batch as the log knows it: the newest row of each of its transactions."""

from collections.abc import Iterable
from dataclasses import dataclass

from spark_eos._protocol.transactions.state import COMMITTED_STATES, TransactionState
from spark_eos._protocol.transactions.transaction import TransactionRecord
from spark_eos.errors import CorruptLogError

ABORTED = {TransactionState.PREPARE_ABORT, TransactionState.COMPLETE_ABORT}


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
