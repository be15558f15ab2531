"""Driver. The ranges of a batch read: from its options, less what its filters leave out."""

from spark_eos.errors import OptionError
from spark_eos.options import SourceOptions
from spark_eos.protocol.offset_range import OffsetRange, divide
from spark_eos.source.filters import Pushed
from spark_eos.source.offsets import (
    ending_offsets,
    existing_partitions,
    offset_reader,
    starting_offsets,
)


def batch_ranges(options: SourceOptions, pushed: Pushed) -> list[OffsetRange]:
    """What each task reads. Start and end are checked before the filters are looked at."""
    reader = offset_reader(options)
    partitions = set(existing_partitions(reader, options))
    start = starting_offsets(reader, options, partitions)
    end = ending_offsets(reader, options, partitions)
    for topic, partition in sorted(p for p in partitions if start[p] > end[p]):
        raise OptionError(
            f"the read of {topic}-{partition} would start at offset {start[topic, partition]}, "
            f"behind its end at {end[topic, partition]}: correct the starting or the ending option"
        )
    wanted = [OffsetRange(*p, start[p], end[p]) for p in partitions if pushed.wants(p)]
    first_ms = pushed.timestamp_ms.low
    if first_ms is not None and first_ms > 0:
        found = reader.at({r.topic_partition: first_ms for r in wanted})
        # A partition without an answer holds nothing that is as late.
        wanted = [pushed.narrow(r, found.get(r.topic_partition, r.end)) for r in wanted]
    else:
        wanted = [pushed.narrow(r, None) for r in wanted]
    there = [r for r in wanted if r.size > 0]
    return divide(there, options.min_partitions, options.max_records_per_partition)
