"""Pure. Step 1: the recovery table of ARCHITECTURE.md, from the log and the transactions' fates."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from spark_eos._protocol.transactions.batch import LoggedBatch
from spark_eos._protocol.transactions.fate import Fate
from spark_eos._protocol.transactions.state import TransactionState
from spark_eos._protocol.transactions.transaction import TransactionRecord


class Verdict(Enum):
    """What became of the batch's transactions, and what follows."""

    ALL_COMMITTED = "all committed"  # the batch that runs again writes nothing
    NONE_COMMITTED = "none committed"  # the batch is written again in full and decided again
    SOME_COMMITTED = "some committed"  # only what is lost is written, if it is the same batch
    CANNOT_TELL = "cannot tell"  # stop: a person decides
    STILL_OPEN = "still open"  # stop: start again later


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryPlan:
    """The verdict on a batch, with its transactions by their fate."""

    verdict: Verdict
    committed: tuple[TransactionRecord, ...]
    lost: tuple[TransactionRecord, ...]
    unclear: tuple[TransactionRecord, ...]

    @property
    def committed_partitions(self) -> frozenset[int]:
        """The sink partitions whose rows are visible."""
        partitions = (record.sink_partition for record in self.committed)
        return frozenset(partition for partition in partitions if partition is not None)

    @property
    def rows_complete(self) -> bool:
        """Whether all rows are visible. The move of the group may be lost: it needs no rows."""
        if self.verdict is Verdict.ALL_COMMITTED:
            return True
        only_offsets_lost = all(record.sink_partition is None for record in self.lost)
        return bool(self.committed_partitions) and only_offsets_lost

    def rows(self, at: datetime) -> tuple[TransactionRecord, ...]:
        """The rows to log before lost partitions are written again."""
        if self.verdict not in (Verdict.NONE_COMMITTED, Verdict.SOME_COMMITTED):
            return ()  # where all is committed, the next decision carries the completion
        ended = [(record, TransactionState.COMPLETE_COMMIT) for record in self.committed]
        ended += [(record, TransactionState.COMPLETE_ABORT) for record in self.lost]
        return tuple(
            record.moved_to(state, at) for record, state in ended if record.state.is_pending
        )


def plan_recovery(batch: LoggedBatch, fates: Mapping[str, Fate]) -> RecoveryPlan:
    """Judge a logged batch. `fates` has the fate of each of its decided transactions."""
    judged = [(record, _fate(record, fates)) for record in batch.records]
    committed = tuple(record for record, fate in judged if fate is Fate.COMMITTED)
    lost = tuple(record for record, fate in judged if fate is Fate.ABORTED)
    unclear = tuple(record for record, fate in judged if fate in (Fate.OPEN, Fate.GONE))
    if unclear:  # one is enough: to write the batch and to skip it could both be wrong
        still_open = any(fate is Fate.OPEN for _, fate in judged)
        verdict = Verdict.STILL_OPEN if still_open else Verdict.CANNOT_TELL
    elif not lost:
        verdict = Verdict.ALL_COMMITTED
    elif not committed:
        verdict = Verdict.NONE_COMMITTED
    else:
        verdict = Verdict.SOME_COMMITTED
    return RecoveryPlan(verdict=verdict, committed=committed, lost=lost, unclear=unclear)


def _fate(record: TransactionRecord, fates: Mapping[str, Fate]) -> Fate | None:
    """None for an id that had rows in an earlier attempt of the batch but has none now."""
    match record.state:
        case TransactionState.COMPLETE_COMMIT:
            return Fate.COMMITTED
        case TransactionState.COMPLETE_ABORT | TransactionState.PREPARE_ABORT:
            return Fate.ABORTED
        case TransactionState.PREPARE_COMMIT:
            return fates[record.identity.transactional_id]
        case _:
            return None
