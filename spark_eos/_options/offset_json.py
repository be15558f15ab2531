"""Every process. The JSON of partitions, offsets and timestamps: `{"topic": {"0": 23}}`.

Nothing is guessed, because a misspelt partition or offset would be read as another one.
"""

import json
import re
from typing import Any, Final

from spark_eos._protocol.offsets.offset_limit import EARLIEST
from spark_eos._protocol.offsets.offset_map import is_topic_id
from spark_eos._protocol.offsets.topic_name import RULE, is_topic_name
from spark_eos._protocol.offsets.topic_partition import TopicPartition

_PARTITION = re.compile(r"[0-9]{1,10}")
_LAST_PARTITION: Final = 2**31 - 1
_LAST_OFFSET: Final = 2**63 - 1
_PARTITIONS: Final = '{"topicA":[0,1],"topicB":[0]}'
_OFFSETS: Final = '{"topicA":{"0":23,"1":-1},"topicB":{"0":-2}}, -1 for latest, -2 for earliest'
_TIMESTAMPS: Final = '{"topicA":{"0":1700000000000}}, in milliseconds since 1970'

Numbers = tuple[tuple[TopicPartition, int], ...]


def partitions(text: str) -> tuple[TopicPartition, ...]:
    """Partitions by topic, sorted."""
    found: list[TopicPartition] = []
    for topic, numbers in _topics(text, _PARTITIONS).items():
        if not isinstance(numbers, list) or not numbers:
            raise _malformed(_PARTITIONS, f"topic '{topic}' has no list of partitions")
        for number in numbers:
            if not _is_whole(number) or not 0 <= number <= _LAST_PARTITION:
                raise _malformed(_PARTITIONS, f"{number!r} is not a partition")
            found.append(TopicPartition(topic, number))
    if len(set(found)) != len(found):
        raise _malformed(_PARTITIONS, "a partition is given twice")
    return tuple(sorted(found))


def offsets(text: str) -> Numbers:
    """An offset for each partition, sorted by partition."""
    return _numbers(text, _OFFSETS, least=EARLIEST)


def timestamps(text: str) -> Numbers:
    """A timestamp for each partition, sorted by partition."""
    return _numbers(text, _TIMESTAMPS, least=0)


def _numbers(text: str, example: str, *, least: int) -> Numbers:
    found: dict[TopicPartition, int] = {}
    for topic, numbers in _topics(text, example).items():
        if not isinstance(numbers, dict) or not numbers:
            raise _malformed(example, f"topic '{topic}' has no partitions")
        for key, number in numbers.items():
            if not _PARTITION.fullmatch(key) or int(key) > _LAST_PARTITION:
                raise _malformed(example, f"'{key}' is not a partition")
            if not _is_whole(number) or not least <= number <= _LAST_OFFSET:
                raise _malformed(example, f"{number!r} of partition {topic}-{key} is not accepted")
            partition = TopicPartition(topic, int(key))
            if partition in found:
                raise _malformed(example, f"{topic}-{key} is given twice")
            found[partition] = number
    return tuple(sorted(found.items()))


def _topics(text: str, example: str) -> dict[str, Any]:
    try:
        parsed = json.loads(text, object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise _malformed(example, str(error)) from None
    if isinstance(parsed, dict):  # offsets copied from a checkpoint have topic ids as extra keys
        parsed = {key: value for key, value in parsed.items() if not is_topic_id(key, value)}
    if not isinstance(parsed, dict) or not parsed:
        raise _malformed(example, "no topic is given")
    for topic in parsed:
        if not is_topic_name(topic):
            raise _malformed(example, f"topic '{topic}': {RULE}")
    return parsed


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name is given twice")
    return found


def _is_whole(number: object) -> bool:
    return isinstance(number, int) and not isinstance(number, bool)


def _malformed(example: str, reason: str) -> ValueError:
    return ValueError(f"{reason}. Give JSON such as {example}")
