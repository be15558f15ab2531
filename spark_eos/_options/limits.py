"""Where a read starts and ends: a timestamp for all, one for each partition, or offsets.

Of several that are given the first in this order counts, as in Spark's own connector.
"""

from collections.abc import Mapping
from typing import Final

from spark_eos._options.offset_json import offsets, timestamps
from spark_eos._options.values import number
from spark_eos._protocol.offsets.offset_limit import (
    EARLIEST,
    LATEST,
    Everywhere,
    GlobalTimestamp,
    GroupOffsets,
    NoMatch,
    OffsetLimit,
    SpecificOffsets,
    SpecificTimestamps,
)
from spark_eos.errors import OptionError

_WORDS: Final = {"earliest": EARLIEST, "latest": LATEST}


def starting(given: Mapping[str, str], default: int) -> OffsetLimit:
    """Where to start. `default` tells a batch read, which must have something to read."""
    limit = _limit(given, "starting", _no_match(given), default)
    if default == EARLIEST:
        _refuse(limit, LATEST, "startingOffsets", "nothing would be read: a batch read ends there")
    return limit


def ending(given: Mapping[str, str], start: OffsetLimit) -> OffsetLimit:
    """Where to end."""
    # A time that nothing is as late as lies behind everything: that end is the latest offset.
    limit = _limit(given, "ending", NoMatch.LATEST, LATEST)
    _refuse(limit, EARLIEST, "endingOffsets", "nothing would be read")
    _compare(start, limit)
    return limit


def _limit(given: Mapping[str, str], side: str, no_match: NoMatch, default: int) -> OffsetLimit:
    timestamp = number(given, f"{side}Timestamp", least=0, unit="milliseconds since 1970")
    if timestamp is not None:
        return GlobalTimestamp(timestamp, no_match)
    by_timestamp, by_offset = f"{side}OffsetsByTimestamp", f"{side}Offsets"
    if by_timestamp.lower() in given:
        value = given[by_timestamp.lower()].strip()
        return SpecificTimestamps(timestamps(by_timestamp, value), no_match)
    value = given.get(by_offset.lower(), "").strip()
    if by_offset.lower() not in given:
        return Everywhere(default)
    if value.lower() in _WORDS:
        return Everywhere(_WORDS[value.lower()])
    if value.lower() == "group" and side == "starting":
        return GroupOffsets()
    if not value.startswith("{"):
        words = "earliest, latest, group" if side == "starting" else "earliest, latest"
        raise OptionError(f"{by_offset} '{value}': accepted are {words} and JSON")
    return SpecificOffsets(offsets(by_offset, value))


def _no_match(given: Mapping[str, str]) -> NoMatch:
    value = given.get("startingoffsetsbytimestampstrategy", NoMatch.ERROR.value).strip().lower()
    if value not in {choice.value for choice in NoMatch}:
        raise OptionError(
            f"startingOffsetsByTimestampStrategy '{value}': error or latest is accepted"
        )
    return NoMatch(value)


def _refuse(limit: OffsetLimit, offset: int, option: str, reason: str) -> None:
    word = {number: word for word, number in _WORDS.items()}[offset]
    if isinstance(limit, Everywhere) and limit.offset == offset:
        raise OptionError(f"{option} cannot be {word}: {reason}")
    if isinstance(limit, SpecificOffsets):
        for partition, given in limit.offsets:
            if given == offset:
                raise OptionError(f"{option} of {partition} cannot be {offset} ({word}): {reason}")


def _compare(start: OffsetLimit, end: OffsetLimit) -> None:
    """Raise where both sides name numbers of one kind and the end lies before the start."""
    if isinstance(start, SpecificOffsets) and isinstance(end, SpecificOffsets):
        first, last, what = dict(start.offsets), dict(end.offsets), "Offsets"
    elif isinstance(start, SpecificTimestamps) and isinstance(end, SpecificTimestamps):
        first, last, what = dict(start.timestamps), dict(end.timestamps), "OffsetsByTimestamp"
    elif isinstance(start, GlobalTimestamp) and isinstance(end, GlobalTimestamp):
        if start.timestamp > end.timestamp:
            raise OptionError(
                f"startingTimestamp {start.timestamp} is later than endingTimestamp {end.timestamp}"
            )
        return
    else:
        return
    for partition in sorted(first.keys() ^ last.keys()):
        raise OptionError(
            f"starting{what} and ending{what} do not name the same partitions: "
            f"{partition} is in one of them only"
        )
    for partition, offset in first.items():
        if offset > last[partition] >= 0:
            raise OptionError(
                f"starting{what} of {partition} is {offset}, "
                f"behind ending{what}, which is {last[partition]}"
            )
