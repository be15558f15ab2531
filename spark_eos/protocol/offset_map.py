"""Pure. Offsets as they stand in a checkpoint: `{"topic": {"0": 23}}`.

Spark's own source writes the same, so a query can change from one source to the other and go on
with its checkpoint.
"""

import json
from collections.abc import Mapping
from typing import Any

from spark_eos.protocol.offset_limit import Offsets


def to_map(offsets: Offsets) -> dict[str, dict[str, int]]:
    """For Spark, which compares offsets as texts: always in the same order."""
    result: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in sorted(offsets.items()):
        result.setdefault(topic, {})[str(partition)] = offset
    return result


def from_map(given: Mapping[str, Mapping[str, Any]]) -> Offsets:
    """The offsets of a checkpoint."""
    return {
        (topic, int(partition)): int(offset)
        for topic, partitions in given.items()
        for partition, offset in partitions.items()
    }


def kafka_offsets(given: object) -> Offsets:
    """The offsets of a source, as JSON or parsed; none where it is a source of another kind."""
    try:
        parsed = json.loads(given) if isinstance(given, str) else given
        return from_map(parsed)  # type: ignore[arg-type]
    except (AttributeError, TypeError, ValueError):
        return {}
