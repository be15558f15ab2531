"""The recovery table of design: what follows from (log, coordinator's and data's answers). Pure.

| of the batch's transactions | verdict | then |
|---|---|---|
| all committed | ALL_COMMITTED | the batch that runs again writes nothing |
| none committed | NONE_COMMITTED | it is written again in full and decided again |
| some committed | SOME_COMMITTED | only the lost partitions are written, if it is the same batch |
| the same, only the offsets are lost | SOME_COMMITTED | no row is written, the group is moved |
| one cannot be told any more | CANNOT_TELL | stop: a person decides |
| one is still open | STILL_OPEN | stop: start again later |

A batch that is partly unknown is CANNOT_TELL whatever the others are: to write or to skip could
both be wrong.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from spark_eos._protocol.transactions.batch import LoggedBatch
from spark_eos._protocol.transactions.fate import Fate
from spark_eos._protocol.transactions.state import TransactionState
from spark_eos._protocol.transactions.transaction import TransactionRecord


class Verdict(Enum):
    """One row of the recovery table."""

    ALL_COMMITTED = "all committed"
    NONE_COMMITTED = "none committed"
    SOME_COMMITTED = "some committed"
    CANNOT_TELL = "cannot tell"
    STILL_OPEN = "still open"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryPlan:
    """The verdict on a batch, and the transactions that it rests on."""

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
        """Whether all rows are visible. What may be lost then is the move of the group, for which
        it does not matter whether the batch comes back with the same rows.
        """
        if self.verdict is Verdict.ALL_COMMITTED:
            return True
        only_offsets_lost = all(record.sink_partition is None for record in self.lost)
        return bool(self.committed_partitions) and only_offsets_lost

    def rows(self, at: datetime) -> tuple[TransactionRecord, ...]:
        """The rows to log before the lost partitions are written again.

        Where everything is committed there are none: the next decision carries the completion.
        """
        if self.verdict not in (Verdict.NONE_COMMITTED, Verdict.SOME_COMMITTED):
            return ()
        ended = [(record, TransactionState.COMPLETE_COMMIT) for record in self.committed]
        ended += [(record, TransactionState.COMPLETE_ABORT) for record in self.lost]
        return tuple(
            record.moved_to(state, at) for record, state in ended if record.state.is_pending
        )


def plan_recovery(batch: LoggedBatch, fates: Mapping[str, Fate]) -> RecoveryPlan:
    """Judge a logged batch. `fates` holds an answer for each of its pending transactions."""
    committed, lost, unclear = [], [], []
    still_open = False
    for record in batch.records:
        fate = _fate(record, fates)
        if fate is Fate.COMMITTED:
            committed.append(record)
        elif fate is Fate.ABORTED:
            lost.append(record)
        elif fate is not None:
            unclear.append(record)
            still_open = still_open or fate is Fate.OPEN
    if unclear:
        verdict = Verdict.STILL_OPEN if still_open else Verdict.CANNOT_TELL
    elif not lost:
        verdict = Verdict.ALL_COMMITTED
    elif not committed:
        verdict = Verdict.NONE_COMMITTED
    else:
        verdict = Verdict.SOME_COMMITTED
    return RecoveryPlan(
        verdict=verdict, committed=tuple(committed), lost=tuple(lost), unclear=tuple(unclear)
    )


def _fate(record: TransactionRecord, fates: Mapping[str, Fate]) -> Fate | None:
    """None for an id that had rows in an earlier attempt of the batch and has none now."""
    match record.state:
        case TransactionState.COMPLETE_COMMIT:
            return Fate.COMMITTED
        case TransactionState.COMPLETE_ABORT | TransactionState.PREPARE_ABORT:
            return Fate.ABORTED
        case TransactionState.PREPARE_COMMIT:
            return fates[record.identity.transactional_id]
        case _:
            return None
