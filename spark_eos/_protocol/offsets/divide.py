"""Pure. Cuts offset ranges into tasks, in the same way for a micro-batch that runs again."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from spark_eos._protocol.offsets.topic_partition import OffsetRange


@dataclass(frozen=True, slots=True)
class PlannedRange:
    """What a task reads, and the number of records that it must find, where that is known."""

    range: OffsetRange
    records: int | None = None


def divide(
    ranges: Iterable[OffsetRange], min_partitions: int | None, max_records: int | None
) -> list[OffsetRange]:
    """Cut large ranges: none above `max_records`, and about `min_partitions` ranges in all."""
    ordered = sorted(ranges)
    parts = {r: -(-r.size // max_records) if max_records else 1 for r in ordered}  # rounded up
    if min_partitions is not None and min_partitions > sum(parts[r] for r in ordered if r.size):
        for r, share in _shares([r for r in ordered if r.size], min_partitions).items():
            parts[r] = max(parts[r], share)
    return [part for r in ordered for part in _cut(r, parts[r])]


def _shares(ranges: Sequence[OffsetRange], wanted: int) -> dict[OffsetRange, int]:
    """Tasks for each range by its size. Small ranges get one each; large ones share the rest."""
    total = sum(r.size for r in ranges)
    small = {r for r in ranges if _share(r.size, total, wanted) == 1}
    left_total = total - sum(r.size for r in small)
    left = max(1, wanted - len(small))
    return {r: 1 if r in small else _share(r.size, left_total, left) for r in ranges}


def _share(size: int, total: int, wanted: int) -> int:
    return max(1, (2 * size * wanted + total) // (2 * total))  # rounded, without a float


def _cut(whole: OffsetRange, parts: int) -> list[OffsetRange]:
    parts = max(1, min(parts, whole.size))
    edges = [whole.start + whole.size * i // parts for i in range(parts)] + [whole.end]
    return [OffsetRange(whole.topic, whole.partition, start, end) for start, end in pairwise(edges)]
