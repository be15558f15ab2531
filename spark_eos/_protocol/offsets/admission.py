"""Pure. Rate limits: how many offsets are available to a micro-batch, and how far it may go."""

import math

from spark_eos._protocol.offsets.topic_partition import Offsets, TopicPartition


def available(start: Offsets, latest: Offsets) -> int:
    """The number of offsets from start to latest, over all partitions."""
    return sum(_sizes(start, latest).values())


def rate_limited(limit: int, start: Offsets, latest: Offsets) -> Offsets:
    """The latest offsets, or less: `limit` is shared by size, as Spark does (design/source.md)."""
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
    return math.ceil(share) if share < 1 else math.floor(share)  # at least 1: no partition starves


def _sizes(start: Offsets, latest: Offsets) -> dict[TopicPartition, int]:
    return {p: latest[p] - start[p] for p in latest if p in start and latest[p] > start[p]}
