"""Task worker. Records as columns. Python calls for each field would take most of a read."""

from itertools import chain
from typing import Any, Final

import numpy as np
from confluent_kafka import Message
from numpy.typing import NDArray

# librdkafka's timestamp types are Kafka's plus one. Spark shows Kafka's, where none is -1.
_TIMESTAMP_TYPE: Final = 1


def keys(records: list[Message]) -> list[Any]:
    """Bytes or None."""
    return list(map(Message.key, records))


def values(records: list[Message]) -> list[Any]:
    """Bytes or None."""
    return list(map(Message.value, records))


def offsets(records: list[Message]) -> NDArray[np.int64]:
    """Ascending offsets. Without gaps the first and the last record give them all."""
    first: Any = records[0].offset()
    last: Any = records[-1].offset()
    if last - first + 1 == len(records):
        return np.arange(first, last + 1, dtype=np.int64)
    return np.fromiter(map(Message.offset, records), np.int64, len(records))


def timestamps(records: list[Message]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Milliseconds, and the types: 0 the producer's time, 1 the broker's, -1 none."""
    pairs = chain.from_iterable(map(Message.timestamp, records))
    both = np.fromiter(pairs, np.int64, 2 * len(records)).reshape(-1, 2)
    return both[:, 1], (both[:, 0] - _TIMESTAMP_TYPE).astype(np.int32)


def headers(records: list[Message]) -> list[Any]:
    """A list of (key, value) for each record, or None."""
    return list(map(Message.headers, records))
