"""Pure. The position of a stream: offsets, and the ids of their topics (docs/design/source.md)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

from spark_eos._protocol.offsets.topic_partition import Offsets

# The known ids of topics.
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
        """A position with the ids of only those topics that have offsets."""
        topics = {topic for topic, _ in offsets}
        return cls(offsets, {t: found for t, found in topic_ids.items() if t in topics})


def replaced(before: Mapping[str, str], after: Mapping[str, str]) -> set[str]:
    """The topics that have another id `after`. A topic without an id on one side is left out."""
    return {topic for topic, known in before.items() if after.get(topic, known) != known}
