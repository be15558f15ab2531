"""Pure. Where a read starts or ends, before Kafka resolves it. The kinds are those of Spark."""

from dataclasses import dataclass
from enum import Enum
from typing import Final

from spark_eos._protocol.offsets.topic_partition import TopicPartition

LATEST: Final = -1
EARLIEST: Final = -2


class NoMatch(Enum):
    """What to do in a partition without a record at or after the timestamp."""

    ERROR = "error"
    LATEST = "latest"


@dataclass(frozen=True, slots=True)
class Everywhere:
    """EARLIEST or LATEST in every partition."""

    offset: int


@dataclass(frozen=True, slots=True)
class SpecificOffsets:
    """An offset for each partition. It may be EARLIEST or LATEST."""

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
    """The committed offsets of a consumer group; EARLIEST in a partition without one."""


OffsetLimit = Everywhere | GroupOffsets | SpecificOffsets | SpecificTimestamps | GlobalTimestamp
