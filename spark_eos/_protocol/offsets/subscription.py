"""Pure. Which partitions a read takes: named ones, or all of topics by name or by pattern."""

import re
from dataclasses import dataclass
from typing import Final

from spark_eos._protocol.offsets.topic_partition import TopicPartition

# The brokers' own topics: no user means them with a pattern.
_INTERNAL: Final = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})


@dataclass(frozen=True, slots=True)
class Assign:
    """These partitions only."""

    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class Subscribe:
    """Every partition of these topics, new ones included."""

    topics: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Pattern:
    """Every partition of every topic whose name matches anywhere, new topics included."""

    regex: str

    def matches(self, topic: str) -> bool:
        """Whether the topic is read."""
        return topic not in _INTERNAL and re.search(self.regex, topic) is not None


Subscription = Assign | Subscribe | Pattern
