"""Planner worker. The ranges of a batch read, from its options and its filters."""

from spark_eos._protocol.offsets.divide import PlannedRange, divide
from spark_eos._protocol.offsets.topic_partition import OffsetRange
from spark_eos._session import ReadSession
from spark_eos._source.filters import Pushed
from spark_eos._source.offsets import (
    ending_offsets,
    open_snapshot,
    resolve_partitions,
    starting_offsets,
)
from spark_eos.errors import OptionError


def plan_ranges(session: ReadSession, pushed: Pushed) -> list[PlannedRange]:
    """The range of each task of a batch read."""
    wanted = session.options.snapshot
    if wanted is None or not wanted.names_batches:
        return [PlannedRange(r) for r in batch_ranges(session, pushed)]
    from spark_eos._source.snapshot import Snapshot, batch_ranges_of

    # Filters do not narrow these: records can be counted in whole micro-batches only.
    partitions, snapshot = set(resolve_partitions(session)), Snapshot(session, wanted)
    found = batch_ranges_of(snapshot, wanted.starting_batch, wanted.ending_batch, partitions)
    return [PlannedRange(r, records) for r, records in sorted(found.items())]


def batch_ranges(session: ReadSession, pushed: Pushed) -> list[OffsetRange]:
    """Ranges by offsets. Start and end are checked whatever the filters leave out."""
    options = session.options
    partitions = set(resolve_partitions(session))
    start = starting_offsets(session, partitions)
    end = ending_offsets(session, partitions)
    snapshot = open_snapshot(session)
    if snapshot is not None:
        whole = snapshot.cut(end)
        end = dict(start) if whole is None else whole
        start = {p: min(offset, end[p]) for p, offset in start.items()}
    for p in sorted(p for p in partitions if start[p] > end[p]):
        raise OptionError(
            "the read of {partition} would start at offset {start}, after its end at {end}. Correct"
            " the starting or the ending option",
            partition=p,
            start=start[p],
            end=end[p],
        )
    wanted = [OffsetRange(*p, start[p], end[p]) for p in partitions if pushed.wants(p)]
    first_ms = pushed.timestamp_ms.low
    if first_ms is not None and first_ms > 0:
        found = session.offset_reader.at({r.topic_partition: first_ms for r in wanted})
        # A partition without an answer has no record at or after that time.
        wanted = [pushed.narrow(r, found.get(r.topic_partition, r.end)) for r in wanted]
    else:
        wanted = [pushed.narrow(r, None) for r in wanted]
    there = [r for r in wanted if r.size > 0]
    return divide(there, options.min_partitions, options.max_records_per_partition)
