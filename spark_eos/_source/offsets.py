"""Driver. What the user said of start and end, and what that is in Kafka now."""

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
    """The log that says where a read at isolation level snapshot ends; a stream waits for it."""
    if session.options.snapshot is None:
        return None
    from spark_eos._source.snapshot import Snapshot  # it loads Delta

    return Snapshot(session, session.options.snapshot, waits=waits)


def resolve_partitions(session: ReadSession) -> dict[TopicPartition, str | None]:
    """The partitions to read with their topics' ids; raise for one that does not exist.

    A topic that was created a moment ago may not have reached every broker: it is asked for again.
    """
    options = session.options
    for turn in range(options.num_retries):
        found = session.offset_reader.partitions(options.subscription)
        missing = _missing(options, found)
        if not missing:
            return found
        session.clock.sleep(session.retries.pause_s(turn))
    raise OptionError(
        f"{missing[0]} does not exist on {options.client.bootstrap_servers}: create it, or correct "
        "assign or subscribe"
    )


def starting_offsets(session: ReadSession, partitions: set[TopicPartition]) -> Offsets:
    """Where to start, inside what is there: a start before it is a loss, one behind it an error."""
    options, reader = session.options, session.offset_reader
    offsets = _resolve(session, partitions, start=True)
    if not isinstance(options.starting, SpecificOffsets | GroupOffsets):
        return offsets
    option = "startingOffsets"
    if isinstance(options.starting, GroupOffsets):
        option = f"the offset of group '{options.group_id}'"
    earliest, latest = reader.earliest(partitions), reader.latest(partitions)
    for partition, offset in offsets.items():
        first, end = earliest[partition], latest[partition]
        if offset > end:
            raise OptionError(
                f"{option} of {partition} is {offset}, but the partition ends at "
                f"{end} ({options.isolation_level})"
            )
        if offset < first:
            DataLoss(options.fail_on_data_loss).report(
                f"{option} of {partition} is {offset}, but the partition starts at {first}"
            )
            offsets[partition] = first
    return offsets


def ending_offsets(session: ReadSession, partitions: set[TopicPartition]) -> Offsets:
    """Where to end; an end behind what is there would be waited for, so it is an error.

    Or, with failOnDataLoss false, it is cut off.
    """
    options = session.options
    offsets = _resolve(session, partitions, start=False)
    if not isinstance(options.ending, SpecificOffsets):
        return offsets
    latest = session.offset_reader.latest(partitions)
    for partition, offset in offsets.items():
        end = latest[partition]
        if offset > end:
            text = f"endingOffsets of {partition} is {offset}, but the partition ends at "
            text += f"{end} ({options.isolation_level})"
            if options.fail_on_data_loss:
                raise OptionError(text)
            _LOG.warning("%s: reading up to there", text)
            offsets[partition] = end
    return offsets


def _missing(options: SourceOptions, found: Collection[TopicPartition]) -> list[str]:
    match options.subscription:
        case Assign(partitions):
            return [f"partition {p}" for p in partitions if p not in found]
        case Pattern():  # a topic may come later
            return []
        case subscribed:
            there = {topic for topic, _ in found}
            return [f"topic '{topic}'" for topic in subscribed.topics if topic not in there]


def _resolve(session: ReadSession, partitions: set[TopicPartition], *, start: bool) -> Offsets:
    offsets = _limit_offsets(session, partitions, start=start)
    for partition in sorted(partitions - offsets.keys()):
        raise OptionError(f"{partition} was deleted while its offsets were asked for")
    return offsets


def _limit_offsets(
    session: ReadSession, partitions: set[TopicPartition], *, start: bool
) -> Offsets:
    reader, side = session.offset_reader, "starting" if start else "ending"
    limit = session.options.starting if start else session.options.ending
    match limit:
        case Everywhere(offset):
            return _numbers(reader, dict.fromkeys(partitions, offset))
        case GroupOffsets():
            return _numbers(reader, group_start(session, partitions))
        case SpecificOffsets(offsets):
            _check_partitions(f"{side}Offsets", dict(offsets), partitions)
            return _numbers(reader, dict(offsets))
        case SpecificTimestamps(timestamps, no_match):
            _check_partitions(f"{side}OffsetsByTimestamp", dict(timestamps), partitions)
            return _at(reader, dict(timestamps), no_match)
        case GlobalTimestamp(timestamp, no_match):
            return _at(reader, dict.fromkeys(partitions, timestamp), no_match)


def _numbers(reader: OffsetReader, wanted: Offsets) -> Offsets:
    """Numbers for EARLIEST and LATEST; a number is a number."""
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
            f"no record of {partition} is as late as {timestamps[partition]}: give "
            "an earlier time, or set startingOffsetsByTimestampStrategy to latest"
        )
    return found | reader.latest(late)


def _check_partitions(option: str, named: Offsets, partitions: set[TopicPartition]) -> None:
    for partition in sorted(partitions - named.keys()):
        hint = "" if option.endswith("ByTimestamp") else ". Use -1 for latest and -2 for earliest"
        raise OptionError(
            f"{option} must name every partition that is read: {partition} is missing{hint}"
        )
    for partition in sorted(named.keys() - partitions):
        raise OptionError(
            f"{option} names {partition}, which is not among the partitions that are read"
        )
