"""Driver. Decide which old rows of the log may expire. Pure.

Only rows of files that are wholly old are judged. So an append in between changes no verdict.

- The rows of a transaction expire together, and only if its intent and its end are both old.
- The transactions of a batch expire together: a snapshot reads whole batches only.
- A pending decision never expires. The last batch of a query expires only with the query.
- An idle query gets one `Dead` row (a tombstone) per id. Old tombstones expire. No tombstone is
  written while a decision is pending or a part of the last batch is aborted: a tombstone counts as
  an end, but aborted rows are still to be written.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from spark_eos._log.record import entry_order, newest_per_id
from spark_eos._log.tail import Tail
from spark_eos._protocol.transactions.batch import latest_batch
from spark_eos._protocol.transactions.state import TransactionState
from spark_eos._protocol.transactions.transaction import TransactionRecord

_Group = list[TransactionRecord]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cutoffs:
    """A row is old before `history`, a query is idle if its newest row is before `idle`."""

    history: datetime
    idle: datetime

    @property
    def oldest_first(self) -> datetime:
        """Rows that are younger than this are not judged."""
        return max(self.history, self.idle)


@dataclass(frozen=True, slots=True, kw_only=True)
class Expiry:
    """The old rows that stay, tombstones with the tails of their queries, and a count."""

    kept: tuple[TransactionRecord, ...]
    dead: tuple[TransactionRecord, ...]
    dead_tails: tuple[Tail, ...]
    gone: int


def judge(
    rows: Iterable[TransactionRecord], tails: Mapping[str, Tail], cutoffs: Cutoffs, now: datetime
) -> Expiry:
    """Judge old rows. `tails` has an entry for each of their queries."""
    by_query: dict[str, _Group] = defaultdict(list)
    for row in rows:
        by_query[row.query_id].append(row)
    kept: _Group = []
    dead: _Group = []
    dead_tails = []
    for query_id, query_rows in by_query.items():
        tail = tails[query_id]
        if _is_gone(query_rows, tail, cutoffs):
            continue
        if _may_die(query_rows, tail, cutoffs):
            at = max(now, tail.newest + timedelta(microseconds=1))
            dead += _tombstones(query_rows, at)
            dead_tails.append(replace(tail, since=at, newest=at, batch=None, is_read=False))
            continue
        kept += _kept(query_rows, tail, cutoffs)
    total = sum(len(group) for group in by_query.values())
    return Expiry(
        kept=tuple(kept), dead=tuple(dead), dead_tails=tuple(dead_tails), gone=total - len(kept)
    )


def _is_gone(rows: _Group, tail: Tail, cutoffs: Cutoffs) -> bool:
    """Whether the tombstones of the query are old, and the query did not come back."""
    newest = max(rows, key=entry_order)
    return (
        newest.state is TransactionState.DEAD
        and newest.entry_timestamp == tail.newest
        and newest.entry_timestamp < cutoffs.history
    )


def _may_die(rows: _Group, tail: Tail, cutoffs: Cutoffs) -> bool:
    newest = max(rows, key=entry_order)
    last_batch = [row for row in rows if row.batch_id == tail.batch_id]
    return (
        tail.newest < cutoffs.idle
        and newest.entry_timestamp == tail.newest
        and newest.state is not TransactionState.DEAD
        and not any(_pending(group) for group in _transactions(rows))
        and not any(
            row.state is TransactionState.COMPLETE_ABORT for row in newest_per_id(last_batch)
        )
    )


def _tombstones(rows: _Group, at: datetime) -> _Group:
    """One row per id, from its newest whole batch: a tombstone counts as written."""
    batches: dict[int, _Group] = defaultdict(list)
    for row in rows:
        batches[row.batch_id].append(row)
    logged = (latest_batch(sorted(b, key=entry_order, reverse=True)) for b in batches.values())
    ended = [r for batch in logged if batch is not None and batch.is_whole for r in batch.records]
    return [row.moved_to(TransactionState.DEAD, at) for row in newest_per_id(ended)]


def _kept(rows: _Group, tail: Tail, cutoffs: Cutoffs) -> _Group:
    batches: dict[int, list[_Group]] = defaultdict(list)
    for group in _transactions(rows):
        batches[group[0].batch_id].append(group)
    return [
        row
        for batch_id, groups in batches.items()
        if batch_id == tail.batch_id or any(_stays(group, cutoffs) for group in groups)
        for group in groups
        for row in group
    ]


def _stays(group: _Group, cutoffs: Cutoffs) -> bool:
    has_intent = any(row.state.is_pending for row in group)
    is_old = all(row.entry_timestamp < cutoffs.history for row in group)
    # The batch of a lost transaction was decided again, and those rows are younger.
    was_lost = (
        any(row.state is TransactionState.PREPARE_COMMIT for row in group)
        and max(group, key=entry_order).state is TransactionState.COMPLETE_ABORT
    )
    return not is_old or not has_intent or was_lost or _pending(group)


def _pending(group: _Group) -> bool:
    batch = latest_batch(sorted(group, key=entry_order, reverse=True))
    return batch is not None and bool(batch.pending)


def _transactions(rows: _Group) -> list[_Group]:
    """Rows by batch and id, over all attempts of the batch."""
    groups: dict[tuple[int, str], _Group] = defaultdict(list)
    for row in rows:
        groups[row.batch_id, row.identity.transactional_id].append(row)
    return list(groups.values())
