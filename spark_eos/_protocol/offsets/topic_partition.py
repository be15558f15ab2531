"""Pure. Partitions, and positions and ranges in them."""

from dataclasses import dataclass
from typing import NamedTuple


class TopicPartition(NamedTuple):
    """A partition of a topic. Its text is the one that Kafka uses: `orders-0`."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


# By partition: the next offset to read, or the one after the last record.
Offsets = dict[TopicPartition, int]


class RecordPosition(NamedTuple):
    """One offset of one partition."""

    topic: str
    partition: int
    offset: int

    @property
    def topic_partition(self) -> TopicPartition:
        """The partition of the offset."""
        return TopicPartition(self.topic, self.partition)


@dataclass(frozen=True, slots=True, order=True)
class OffsetRange:
    """What a task reads: offsets of one partition, from `start` up to, but without, `end`."""

    topic: str
    partition: int
    start: int
    end: int

    @property
    def size(self) -> int:
        """The number of offsets. There may be fewer records: markers and compaction leave gaps."""
        return max(0, self.end - self.start)

    @property
    def topic_partition(self) -> TopicPartition:
        """The partition of the range."""
        return TopicPartition(self.topic, self.partition)

    def __str__(self) -> str:
        return f"{self.topic_partition} [{self.start}, {self.end})"


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class PartitionOffsets:
    """What one transaction wrote to one partition. The log stores it: see `_log/record.py`."""

    topic: str
    partition: int
    first_offset: int
    last_offset: int
    records: int

    @property
    def topic_partition(self) -> TopicPartition:
        """The partition of the records."""
        return TopicPartition(self.topic, self.partition)
