"""Pure. Partitions, and places and ranges in them."""

from dataclasses import dataclass
from typing import NamedTuple


class TopicPartition(NamedTuple):
    """A partition of a topic. As text it is written as Kafka writes it: `orders-0`."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


# The first offset that is not read or was not written, by partition.
Offsets = dict[TopicPartition, int]


class RecordPosition(NamedTuple):
    """One offset of one partition."""

    topic: str
    partition: int
    offset: int

    @property
    def topic_partition(self) -> TopicPartition:
        """Where the offset lies."""
        return TopicPartition(self.topic, self.partition)


@dataclass(frozen=True, slots=True, order=True)
class OffsetRange:
    """Offsets of one partition, from `start` to before `end`: what a task reads."""

    topic: str
    partition: int
    start: int
    end: int

    @property
    def size(self) -> int:
        """Offsets, not records: control records and compaction leave gaps."""
        return max(0, self.end - self.start)

    @property
    def topic_partition(self) -> TopicPartition:
        """Where the range lies."""
        return TopicPartition(self.topic, self.partition)

    def __str__(self) -> str:
        return f"{self.topic_partition} [{self.start}, {self.end})"


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class PartitionOffsets:
    """What one transaction wrote to one partition. A stored format: see `_log/record.py`."""

    topic: str
    partition: int
    first_offset: int
    last_offset: int
    records: int

    @property
    def topic_partition(self) -> TopicPartition:
        """Where the records lie."""
        return TopicPartition(self.topic, self.partition)
