"""Planner worker. What filters say about partitions and offsets, so that less is fetched.

Spark applies every filter again, so only what is certain is left out. A time is a lower bound only,
because producers set the times and an older record may follow. See docs/design/source.md.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
)

from spark_eos._protocol.offsets.topic_partition import OffsetRange, TopicPartition

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(slots=True)
class Bounds:
    """A closed interval. None is no bound. `only` has the values of an equality, if any."""

    low: Any = None
    high: Any = None
    only: frozenset[Any] | None = None

    def hold(self, value: Any) -> bool:
        """Whether the value is inside the bounds."""
        return (
            (self.only is None or value in self.only)
            and (self.low is None or value >= self.low)
            and (self.high is None or value <= self.high)
        )

    def narrow(self, condition: Filter, values: list[Any], step: int) -> None:
        """Add a condition that must hold too. `step` is the distance between two values."""
        match condition:
            case EqualTo() | EqualNullSafe() | In():
                found = frozenset(values)
                self.only = found if self.only is None else self.only & found
                if values:
                    self._at_least(min(values))
                    self._at_most(max(values))
            case GreaterThan():
                self._at_least(values[0] + step)
            case GreaterThanOrEqual():
                self._at_least(values[0])
            case LessThan():
                self._at_most(values[0] - step)
            case LessThanOrEqual():
                self._at_most(values[0])

    def _at_least(self, low: Any) -> None:
        self.low = low if self.low is None else max(self.low, low)

    def _at_most(self, high: Any) -> None:
        self.high = high if self.high is None else min(self.high, high)


@dataclass(slots=True)
class Pushed:
    """The bounds from the filters of a batch read."""

    partition: Bounds = field(default_factory=Bounds)
    offset: Bounds = field(default_factory=Bounds)
    timestamp_ms: Bounds = field(default_factory=Bounds)
    topics: frozenset[str] | None = None

    def push(self, filters: Iterable[Filter]) -> None:
        """Add the filters that can narrow a read."""
        for condition in filters:
            self._push(condition)

    def wants(self, place: TopicPartition) -> bool:
        """Whether a row of this partition can pass the filters."""
        topic, partition = place
        return (self.topics is None or topic in self.topics) and self.partition.hold(partition)

    def narrow(self, whole: OffsetRange, from_time: int | None) -> OffsetRange:
        """The part of the range whose rows can pass. `from_time` is the first offset of a time."""
        offset = self.offset
        start = max(whole.start, offset.low or 0, from_time or 0)
        end = whole.end if offset.high is None else min(whole.end, offset.high + 1)
        if offset.only == frozenset():
            end = start
        return OffsetRange(whole.topic, whole.partition, min(start, end), end)

    def _push(self, condition: Filter) -> None:
        attribute: Any = getattr(condition, "attribute", None)
        value: Any = getattr(condition, "value", None)
        values: list[Any] = list(value) if isinstance(value, list | tuple) else [value]
        match attribute:
            case ("topic",) if isinstance(condition, EqualTo | EqualNullSafe | In):
                found = frozenset(values)
                self.topics = found if self.topics is None else self.topics & found
            case ("partition",) if all(map(_is_whole, values)):
                self.partition.narrow(condition, values, 1)
            case ("offset",) if all(map(_is_whole, values)):
                self.offset.narrow(condition, values, 1)
            case ("timestamp",) if values and all(map(_is_instant, values)):
                # A record's time is in milliseconds, so a bound that is rounded down is safe.
                millis = [(instant - _EPOCH) // timedelta(milliseconds=1) for instant in values]
                self.timestamp_ms.narrow(condition, millis, 0)


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_instant(value: object) -> bool:
    return isinstance(value, datetime) and value.tzinfo is not None
