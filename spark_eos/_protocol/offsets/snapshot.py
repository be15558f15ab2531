"""Pure. Snapshot isolation: a read contains either all rows of a micro-batch or none.

Each partition ends before its first record of the first unreadable batch, or of a later batch. A
batch is unreadable while a decided transaction is not known to be committed, or while another
producer's open transaction holds back the last stable offset. The last stable offsets must be read
before the log (docs/design/source.md).

A tombstone is no batch: it stands for one id, whose last rows may be a part of an older batch.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from spark_eos._protocol.offsets.topic_partition import Offsets, PartitionOffsets, TopicPartition
from spark_eos._protocol.transactions.batch import LoggedBatch, latest_batch
from spark_eos._protocol.transactions.state import TransactionState
from spark_eos._protocol.transactions.transaction import TransactionRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchOutput:
    """What one micro-batch wrote. `pending` are the transactions not known to be committed."""

    batch_id: int
    partitions: tuple[PartitionOffsets, ...]
    pending: tuple[TransactionRecord, ...]
    aborted: bool
    replaced: tuple[str, ...] = ()  # topics that were deleted since, with its rows

    @property
    def complete(self) -> bool:
        """Whether every row is visible, according to the log."""
        return not self.pending and not self.aborted

    def first_offsets(self) -> Offsets:
        """The offset of its first record in each partition."""
        ordered = sorted(self.partitions, key=lambda p: p.first_offset, reverse=True)
        return {p.topic_partition: p.first_offset for p in ordered}  # the lowest one stays

    def end_offsets(self) -> Offsets:
        """The offset after its last record in each partition."""
        ordered = sorted(self.partitions, key=lambda p: p.last_offset)
        return {p.topic_partition: p.last_offset + 1 for p in ordered}  # the highest one stays

    def records(self) -> dict[TopicPartition, int]:
        """The number of its records in each partition."""
        found: dict[TopicPartition, int] = defaultdict(int)
        for p in self.partitions:
            found[p.topic_partition] += p.records
        return dict(found)


def outputs(
    rows: Iterable[TransactionRecord], topic_ids: Mapping[str, str] | None = None
) -> list[BatchOutput]:
    """The batches of one query in the log, in order.

    `topic_ids` are the current ids. Rows in a topic with another id are gone. A version that was
    aborted as a whole is left out if a later one is in the log: the log takes no more rows of it.
    In a stream no batch follows an aborted one.
    """
    by_batch: dict[int, list[TransactionRecord]] = defaultdict(list)
    for row in _since_expiry([r for r in rows if not r.is_note]):
        by_batch[row.batch_id].append(row)
    newest = max(by_batch, default=None)
    logged = [latest_batch(by_batch[batch_id]) for batch_id in sorted(by_batch)]
    return [
        _output(batch, topic_ids or {})
        for batch in logged
        if batch is not None and (batch.batch_id == newest or not batch.is_aborted)
    ]


def whole_batches(batches: Sequence[BatchOutput], latest: Offsets) -> Offsets:
    """The latest offsets, cut so that a read contains no part of a batch."""
    torn = next((i for i, b in enumerate(batches) if not _readable(b, latest)), len(batches))
    return _before(batches[torn:], latest)


def limited(
    batches: Sequence[BatchOutput], start: Offsets, end: Offsets, most: int | None
) -> Offsets:
    """As many whole batches from `start` as `most` offsets allow, but at least one."""
    if most is None or _size(start, end) <= most:
        return end
    best: Offsets | None = None
    for number in range(len(batches)):
        candidate = _before(batches[number + 1 :], end)
        size = _size(start, candidate)
        if size > 0 and (best is None or size <= most):
            best = candidate
        if size > most:
            break
    return end if best is None else best


def _since_expiry(rows: list[TransactionRecord]) -> list[TransactionRecord]:
    """The rows after the newest tombstone. Older rows are of expired, so complete, batches."""
    stones = [r.entry_timestamp for r in rows if r.state is TransactionState.DEAD]
    expired = max(stones, default=None)
    return [r for r in rows if expired is None or r.entry_timestamp > expired]


def _output(batch: LoggedBatch, topic_ids: Mapping[str, str]) -> BatchOutput:
    written = batch.committed  # not Empty: in older logs it has what an aborted attempt wrote
    replaced = {topic for r in written for topic in _replaced(r, topic_ids)}
    return BatchOutput(
        batch_id=batch.batch_id,
        partitions=tuple(p for r in written for p in r.partitions if p.topic not in replaced),
        pending=tuple(
            replace(r, partitions=tuple(p for p in r.partitions if p.topic not in replaced))
            for r in batch.decided
        ),
        aborted=not batch.is_whole,
        replaced=tuple(sorted(replaced)),
    )


def _replaced(record: TransactionRecord, topic_ids: Mapping[str, str]) -> list[str]:
    return [t for t, topic_id in record.topic_ids if topic_ids.get(t, topic_id) != topic_id]


def _readable(batch: BatchOutput, latest: Offsets) -> bool:
    ends = batch.end_offsets()
    return batch.complete and all(ends[p] <= latest[p] for p in ends if p in latest)


def _before(batches: Sequence[BatchOutput], ends: Offsets) -> Offsets:
    """The ends, but before the first record of any of these batches."""
    found = dict(ends)
    for batch in batches:
        for place, first in batch.first_offsets().items():
            if place in found:
                found[place] = min(found[place], first)
    return found


def _size(start: Offsets, end: Offsets) -> int:
    return sum(max(0, end[p] - start.get(p, 0)) for p in end)
