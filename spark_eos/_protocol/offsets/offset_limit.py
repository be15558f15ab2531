"""Where a read starts or ends, as the user said it: before Kafka was asked what that means.

The kinds and their precedence are those of Spark's own connector.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Final

from spark_eos._protocol.offsets.topic_partition import TopicPartition

LATEST: Final = -1
EARLIEST: Final = -2


class NoMatch(Enum):
    """What to do where no record is as late as the asked timestamp."""

    ERROR = "error"
    LATEST = "latest"


@dataclass(frozen=True, slots=True)
class Everywhere:
    """EARLIEST or LATEST in every partition."""

    offset: int


@dataclass(frozen=True, slots=True)
class SpecificOffsets:
    """An offset for each partition; EARLIEST and LATEST are among them."""

    offsets: tuple[tuple[TopicPartition, int], ...]


@dataclass(frozen=True, slots=True)
class SpecificTimestamps:
    """A time in milliseconds for each partition."""

    timestamps: tuple[tuple[TopicPartition, int], ...]
    no_match: NoMatch


@dataclass(frozen=True, slots=True)
class GlobalTimestamp:
    """One time in milliseconds for every partition."""

    timestamp: int
    no_match: NoMatch


@dataclass(frozen=True, slots=True)
class GroupOffsets:
    """Where a consumer group stopped; EARLIEST in a partition that it has not read."""


OffsetLimit = Everywhere | GroupOffsets | SpecificOffsets | SpecificTimestamps | GlobalTimestamp
