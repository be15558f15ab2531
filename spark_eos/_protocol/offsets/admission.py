"""Pure. How far a micro-batch may go: at most so many offsets, or wait until there are enough."""

import math

from spark_eos._protocol.offsets.topic_partition import Offsets, TopicPartition


def available(start: Offsets, latest: Offsets) -> int:
    """Offsets between start and latest over all partitions."""
    return sum(_sizes(start, latest).values())


def rate_limited(limit: int, start: Offsets, latest: Offsets) -> Offsets:
    """The latest offsets, or less: `limit` is split in proportion to what each partition has.

    A partition whose part is below one offset still gets one, so that it is never starved. The
    arithmetic is that of Spark's own source, floating point and all: the same batches.
    """
    sizes = _sizes(start, latest)
    total = sum(sizes.values())
    if total <= limit:
        return dict(latest)
    return {
        partition: min(offset, start[partition] + _part(limit * (sizes[partition] / total)))
        if partition in sizes
        else offset
        for partition, offset in latest.items()
    }


def _part(share: float) -> int:
    return math.ceil(share) if share < 1 else math.floor(share)


def _sizes(start: Offsets, latest: Offsets) -> dict[TopicPartition, int]:
    return {p: latest[p] - start[p] for p in latest if p in start and latest[p] > start[p]}
