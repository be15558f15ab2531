"""Pure. Offsets as they stand in a checkpoint: `{"orders": {"0": 23}, "orders#<topic id>": {}}`.

Spark's own source writes the same without the ids, and skips a key that has no partitions. So a
query can change from one source to the other and go on with its checkpoint. No topic name has a
`#`, and no topic id has one.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from spark_eos._protocol.offsets.stream_position import TopicIds
from spark_eos._protocol.offsets.topic_name import is_topic_name
from spark_eos._protocol.offsets.topic_partition import Offsets, TopicPartition

_SEPARATOR: Final = "#"


def to_map(
    offsets: Offsets, topic_ids: Mapping[str, str] | None = None
) -> dict[str, dict[str, int]]:
    """For Spark, which compares offsets as texts: always in the same order, the ids last."""
    result: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in sorted(offsets.items()):
        result.setdefault(topic, {})[str(partition)] = offset
    for topic, topic_id in sorted((topic_ids or {}).items()):
        result[f"{topic}{_SEPARATOR}{topic_id}"] = {}
    return result


def from_map(given: Mapping[str, Mapping[str, Any]]) -> Offsets:
    """The offsets of a checkpoint, without the ids."""
    return {
        TopicPartition(topic, int(partition)): int(offset)
        for topic, partitions in given.items()
        for partition, offset in partitions.items()
    }


def topic_ids_of(given: Mapping[str, Mapping[str, Any]]) -> TopicIds:
    """The ids of a checkpoint: none in one of Spark's own source, or of an older release."""
    keys = (key.partition(_SEPARATOR) for key in given if is_topic_id(key, given[key]))
    return {topic: topic_id for topic, _, topic_id in keys}


def is_topic_id(key: str, value: object) -> bool:
    """Whether this entry holds no offsets and names the id of a topic."""
    topic, _, topic_id = key.partition(_SEPARATOR)
    return value == {} and topic_id != "" and is_topic_name(topic)


def kafka_offsets(given: object) -> Offsets:
    """The offsets of a source, as JSON or parsed; none where it is a source of another kind."""
    try:
        parsed = json.loads(given) if isinstance(given, str) else given
        return from_map(parsed)  # type: ignore[arg-type]
    except (AttributeError, TypeError, ValueError):
        return {}
