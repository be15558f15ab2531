"""Pure. Snapshot isolation: the output of a query in whole micro-batches, never a part of one.

A reader at read_committed sees a batch partition by partition, as its transactions end. Here ends
are cut so that a batch is read in all of its partitions or in none:

- a batch that is decided and not known to be committed everywhere is cut off, in each partition
  before its first record there;
- so is a batch of which some partition cannot be read yet, because another producer's open
  transaction holds back the last stable offset;
- and with it every batch that follows.

A batch is whole here, or it is not here: a tombstone is no batch, because it stands for one id, and
what an id wrote last may be a part of an older batch. What has expired is long complete.

The last stable offsets must be asked for before the log is read: what is below them was decided
before, so it is in the log.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from spark_eos._protocol.offsets.topic_partition import Offsets, PartitionOffsets, TopicPartition
from spark_eos._protocol.transactions.batch import LoggedBatch, latest_batch
from spark_eos._protocol.transactions.state import TransactionState
from spark_eos._protocol.transactions.transaction import TransactionRecord

# Not Empty: in older logs such a row names what an attempt wrote that was aborted.
_WRITTEN = (TransactionState.PREPARE_COMMIT, TransactionState.COMPLETE_COMMIT)


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchOutput:
    """What one micro-batch wrote, and which of its transactions are not known to be committed."""

    batch_id: int
    partitions: tuple[PartitionOffsets, ...]
    pending: tuple[TransactionRecord, ...]
    aborted: bool
    replaced: tuple[str, ...] = ()  # topics that were deleted since, with what it wrote to them

    @property
    def complete(self) -> bool:
        """Whether every row is visible, as the log has it."""
        return not self.pending and not self.aborted

    def first_offsets(self) -> Offsets:
        """Where the batch begins in each partition that it wrote."""
        found: Offsets = {}
        for p in self.partitions:
            place = p.topic_partition
            found[place] = min(p.first_offset, found.get(place, p.first_offset))
        return found

    def end_offsets(self) -> Offsets:
        """Behind its last record in each partition that it wrote."""
        found: Offsets = {}
        for p in self.partitions:
            place = p.topic_partition
            found[place] = max(p.last_offset + 1, found.get(place, 0))
        return found

    def records(self) -> dict[TopicPartition, int]:
        """How many records it wrote to each partition."""
        found: dict[TopicPartition, int] = defaultdict(int)
        for p in self.partitions:
            found[p.topic_partition] += p.records
        return dict(found)


def outputs(
    rows: Iterable[TransactionRecord], topic_ids: Mapping[str, str] | None = None
) -> list[BatchOutput]:
    """The batches of one query in the log, in order. `topic_ids` are those that topics have now:
    what was written to a topic of another id is gone with it.

    Without a version that was aborted as a whole where a later one is in the log: it was left out,
    and the log takes no row of it any more. No later batch of a stream can follow an aborted one.
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
    """The latest offsets, cut so that no batch is read in part."""
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
    """The rows since the query last expired: all that it had is older than its tombstones."""
    stones = [r.entry_timestamp for r in rows if r.state is TransactionState.DEAD]
    expired = max(stones, default=None)
    return [r for r in rows if expired is None or r.entry_timestamp > expired]


def _output(batch: LoggedBatch, topic_ids: Mapping[str, str]) -> BatchOutput:
    written = [r for r in batch.records if r.state in _WRITTEN]
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
    """Ends before the first record of any of these batches."""
    found = dict(ends)
    for batch in batches:
        for place, first in batch.first_offsets().items():
            if place in found:
                found[place] = min(found[place], first)
    return found


def _size(start: Offsets, end: Offsets) -> int:
    return sum(max(0, end[p] - start.get(p, 0)) for p in end)
