"""Pure. A checkpoint's offsets: `{"orders": {"0": 23}, "orders#<topic id>": {}}`.

Spark's own source skips a key without partitions, so both sources can read them (design/source.md).
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from spark_eos._protocol.offsets.stream_position import TopicIds
from spark_eos._protocol.offsets.topic_name import is_topic_name
from spark_eos._protocol.offsets.topic_partition import Offsets, TopicPartition

_SEPARATOR: Final = "#"  # no topic name and no topic id contains it


def to_map(
    offsets: Offsets, topic_ids: Mapping[str, str] | None = None
) -> dict[str, dict[str, int]]:
    """Offsets for Spark, which compares them as texts: in a fixed order, the ids last."""
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
    """The topic ids of a checkpoint. Spark's own source and older releases write none."""
    keys = (key.partition(_SEPARATOR) for key in given if is_topic_id(key, given[key]))
    return {topic: topic_id for topic, _, topic_id in keys}


def is_topic_id(key: str, value: object) -> bool:
    """Whether this entry is the id of a topic and holds no offsets."""
    topic, _, topic_id = key.partition(_SEPARATOR)
    return value == {} and topic_id != "" and is_topic_name(topic)


def kafka_offsets(given: object) -> Offsets:
    """The offsets of a source, from JSON or parsed. Empty for a source of another kind."""
    try:
        parsed = json.loads(given) if isinstance(given, str) else given
        return from_map(parsed)  # type: ignore[arg-type]
    except (AttributeError, TypeError, ValueError):
        return {}
