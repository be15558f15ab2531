"""Driver. Resolve the start and the end of a read from its options and from Kafka."""

import logging
from collections.abc import Collection
from typing import TYPE_CHECKING

from spark_eos._kafka.admin.offset_reader import OffsetReader
from spark_eos._kafka.consume.data_loss import DataLoss
from spark_eos._options import SourceOptions
from spark_eos._protocol.offsets.offset_limit import (
    EARLIEST,
    LATEST,
    Everywhere,
    GlobalTimestamp,
    GroupOffsets,
    NoMatch,
    SpecificOffsets,
    SpecificTimestamps,
)
from spark_eos._protocol.offsets.subscription import Assign, Pattern
from spark_eos._protocol.offsets.topic_partition import Offsets, TopicPartition
from spark_eos._session import ReadSession
from spark_eos._source.group_start import group_start
from spark_eos.errors import OptionError

if TYPE_CHECKING:
    from spark_eos._source.snapshot import Snapshot

_LOG = logging.getLogger(__name__)


def open_snapshot(session: ReadSession, *, waits: bool = False) -> "Snapshot | None":
    """The log that limits a read at isolation level snapshot. A stream waits for the log."""
    if session.options.snapshot is None:
        return None
    from spark_eos._source.snapshot import Snapshot  # it loads Delta

    return Snapshot(session, session.options.snapshot, waits=waits)


def resolve_partitions(session: ReadSession) -> dict[TopicPartition, str | None]:
    """The partitions to read, with their topics' ids. Raises if a partition does not exist.

    Kafka is asked again, because a new topic may not be known to every broker yet.
    """
    options = session.options
    for turn in range(options.num_retries):
        found = session.offset_reader.partitions(options.subscription)
        missing = _missing(options, found)
        if not missing:
            return found
        session.clock.sleep(session.retries.pause_s(turn))
    raise OptionError(
        "{missing} does not exist on {servers}. Create it, or correct assign or subscribe",
        missing=missing[0],
        servers=options.client.bootstrap_servers,
    )


def starting_offsets(session: ReadSession, partitions: set[TopicPartition]) -> Offsets:
    """Where to start. A start before the first offset is a loss; one after the end is an error."""
    options, reader = session.options, session.offset_reader
    offsets = _resolve(session, partitions, start=True)
    if not isinstance(options.starting, SpecificOffsets | GroupOffsets):
        return offsets
    what = "startingOffsets"
    if isinstance(options.starting, GroupOffsets):
        what = f"the offset of group '{options.group_id}'"
    earliest, latest = reader.earliest(partitions), reader.latest(partitions)
    for partition, offset in offsets.items():
        first, end = earliest[partition], latest[partition]
        if offset > end:
            raise _after_the_end(options, "startingOffsets", what, partition, offset, end)
        if offset < first:
            DataLoss(options.fail_on_data_loss).report(
                f"{what} of {partition} is {offset}, but the partition starts at {first}",
                topic=partition.topic,
            )
            offsets[partition] = first
    return offsets


def ending_offsets(session: ReadSession, partitions: set[TopicPartition]) -> Offsets:
    """Where to end. An end after the partition's end is an error, because a task would wait for it.

    With failOnDataLoss false, the partition's end is used.
    """
    options = session.options
    offsets = _resolve(session, partitions, start=False)
    if not isinstance(options.ending, SpecificOffsets):
        return offsets
    latest = session.offset_reader.latest(partitions)
    for partition, offset in offsets.items():
        end = latest[partition]
        if offset > end:
            option = "endingOffsets"
            error = _after_the_end(options, option, option, partition, offset, end)
            if options.fail_on_data_loss:
                raise error
            _LOG.warning("%s. Reading up to the end of the partition", error)
            offsets[partition] = end
    return offsets


def _after_the_end(
    options: SourceOptions, option: str, what: str, partition: TopicPartition, offset: int, end: int
) -> OptionError:
    return OptionError(
        "{what} of {partition} is {offset}, but the partition ends at {end} ({level})",
        option=option,
        what=what,
        partition=partition,
        offset=offset,
        end=end,
        level=options.isolation_level,
    )


def _missing(options: SourceOptions, found: Collection[TopicPartition]) -> list[str]:
    match options.subscription:
        case Assign(partitions):
            return [f"partition {p}" for p in partitions if p not in found]
        case Pattern():  # a topic may be created later
            return []
        case subscribed:
            there = {topic for topic, _ in found}
            return [f"topic '{topic}'" for topic in subscribed.topics if topic not in there]


def _resolve(session: ReadSession, partitions: set[TopicPartition], *, start: bool) -> Offsets:
    reader, side = session.offset_reader, "starting" if start else "ending"
    match session.options.starting if start else session.options.ending:
        case Everywhere(offset):
            found = _numbers(reader, dict.fromkeys(partitions, offset))
        case GroupOffsets():
            found = _numbers(reader, group_start(session, partitions))
        case SpecificOffsets(offsets):
            _check_partitions(f"{side}Offsets", dict(offsets), partitions)
            found = _numbers(reader, dict(offsets))
        case SpecificTimestamps(timestamps, no_match):
            _check_partitions(f"{side}OffsetsByTimestamp", dict(timestamps), partitions)
            found = _at(reader, dict(timestamps), no_match)
        case GlobalTimestamp(timestamp, no_match):
            found = _at(reader, dict.fromkeys(partitions, timestamp), no_match)
    for deleted in sorted(partitions - found.keys()):
        raise OptionError("{partition} was deleted while the read was planned", partition=deleted)
    return found


def _numbers(reader: OffsetReader, wanted: Offsets) -> Offsets:
    earliest = reader.earliest(p for p, offset in wanted.items() if offset == EARLIEST)
    latest = reader.latest(p for p, offset in wanted.items() if offset == LATEST)
    numbers = {p: offset for p, offset in wanted.items() if offset >= 0}
    return numbers | earliest | latest


def _at(reader: OffsetReader, timestamps: dict[TopicPartition, int], no_match: NoMatch) -> Offsets:
    found = reader.at(timestamps)
    late = timestamps.keys() - found.keys()
    if late and no_match is NoMatch.ERROR:
        partition = min(late)
        raise OptionError(
            "no record of {partition} is at or after the time {timestamp}. Give an earlier time, or"
            " set {option} to latest",
            partition=partition,
            timestamp=timestamps[partition],
            option="startingOffsetsByTimestampStrategy",
        )
    return found | reader.latest(late)


def _check_partitions(option: str, named: Offsets, partitions: set[TopicPartition]) -> None:
    for partition in sorted(partitions - named.keys()):
        hint = "" if option.endswith("ByTimestamp") else ". Use -1 for latest and -2 for earliest"
        raise OptionError(
            "{option} must name every partition that is read: {partition} is missing{hint}",
            option=option,
            partition=partition,
            hint=hint,
        )
    for partition in sorted(named.keys() - partitions):
        raise OptionError(
            "{option} names {partition}, which is not among the partitions that are read",
            option=option,
            partition=partition,
        )
