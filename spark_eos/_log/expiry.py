"""Driver and command line, rarely: which rows may go. Pure.

Judged on the rows of files that are wholly old, and on nothing else, so what is said of a row here
stays true whatever is appended meanwhile:

- a transaction's rows go together, and only with both intent and end among them: so an intent whose
  end is younger stays, and an end whose intent is younger stays;
- the transactions of a batch go together: a reader of whole batches must not find a part of one;
- a pending decision never goes, and neither does a query's last batch;
- a query that is idle for long, with nothing pending and nothing lost in its last batch, is
  replaced by one `Dead` row per id. Those go when they are old themselves. What was aborted or lost
  is still to be written when the query comes back, and a tombstone could not tell. So none is of a
  version that was aborted and left out either: it would be taken for written.
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
    """Rows and queries older than these are old."""

    history: datetime
    idle: datetime

    @property
    def oldest_first(self) -> datetime:
        """No row that is younger than this is judged at all."""
        return max(self.history, self.idle)


@dataclass(frozen=True, slots=True, kw_only=True)
class Expiry:
    """What is left of the old rows, and the tails of the queries that died."""

    kept: tuple[TransactionRecord, ...]
    dead: tuple[TransactionRecord, ...]
    dead_tails: tuple[Tail, ...]
    gone: int


def judge(
    rows: Iterable[TransactionRecord],
    tails: Mapping[str, Tail],
    cutoffs: Cutoffs,
    now: datetime,
) -> Expiry:
    """Split old rows. `tails` has an entry for each of their queries."""
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
    """The query died long ago and did not come back: its tombstones are among the old rows."""
    newest = max(rows, key=entry_order)
    return (
        newest.state is TransactionState.DEAD
        and newest.entry_timestamp == tail.newest
        and newest.entry_timestamp < cutoffs.history
    )


def _may_die(rows: _Group, tail: Tail, cutoffs: Cutoffs) -> bool:
    """Idle, with its last row at hand, every transaction has ended, and the last batch well."""
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
    """One per id, of the last batch in which it ended well."""
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
    # Decided and lost: it was written again since, and that is younger.
    was_lost = (
        any(row.state is TransactionState.PREPARE_COMMIT for row in group)
        and max(group, key=entry_order).state is TransactionState.COMPLETE_ABORT
    )
    return not is_old or not has_intent or was_lost or _pending(group)


def _pending(group: _Group) -> bool:
    batch = latest_batch(sorted(group, key=entry_order, reverse=True))
    return batch is not None and bool(batch.pending)


def _transactions(rows: _Group) -> list[_Group]:
    """Rows by batch and id, over all attempts to write that batch."""
    groups: dict[tuple[int, str], _Group] = defaultdict(list)
    for row in rows:
        groups[row.batch_id, row.identity.transactional_id].append(row)
    return list(groups.values())
