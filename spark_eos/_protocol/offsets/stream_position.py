"""Pure. Where a stream stands: offsets, and the ids of the topics that they belong to.

A topic that is deleted and created again has the same name and another id. An offset of the old
topic means nothing in the new one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

from spark_eos._protocol.offsets.topic_partition import Offsets

# The id of each topic, as far as it is known.
TopicIds = dict[str, str]


@dataclass(frozen=True, slots=True)
class StreamPosition:
    """The start or the end of a micro-batch."""

    offsets: Offsets
    topic_ids: TopicIds = field(default_factory=dict)

    def offsets_of(self, topic: str) -> Offsets:
        """The offsets in one topic."""
        return {p: offset for p, offset in self.offsets.items() if p[0] == topic}

    @classmethod
    def of(cls, offsets: Offsets, topic_ids: Mapping[str, str]) -> Self:
        """With the ids of those topics only that have offsets."""
        topics = {topic for topic, _ in offsets}
        return cls(offsets, {t: found for t, found in topic_ids.items() if t in topics})


def replaced(before: Mapping[str, str], after: Mapping[str, str]) -> set[str]:
    """The topics that have another id `after`. Without an id on both sides nothing is compared."""
    return {topic for topic, known in before.items() if after.get(topic, known) != known}
