"""Task. Consumers that are kept warm between ranges.

A consumer joins no group and commits nothing: it is assigned one partition at an exact offset for
as long as a range lasts. Between two ranges it keeps its connections and fetches nothing, so what
a worker holds in memory is bounded by the settings below and not by the partition.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from confluent_kafka import Consumer, Message

from spark_eos.kafka.client_config import ClientConfig
from spark_eos.kafka.range_reader import RangeReader, ReadPolicy
from spark_eos.protocol.offset_range import OffsetRange

# What a user may change with kafka.*; the rest is fixed below.
_TUNING: Final = {
    "queued.max.messages.kbytes": 32 * 1024,  # the most that is fetched ahead
    "queued.min.messages": 20_000,  # enough to keep going; more is fetched in vain behind the range
    "fetch.wait.max.ms": 20,  # the end of a partition is told after this long
    "fetch.queue.backoff.ms": 5,  # else a full queue delays the next fetch by a second
    "reconnect.backoff.ms": 10,
    "reconnect.backoff.max.ms": 1000,
    "log_level": 0,
}
# A worker has one for each cluster and isolation level that its query reads.
_MOST_WARM: Final = 4

_warm: dict["ConsumerSettings", Any] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerSettings:
    """What tells two consumers apart."""

    client: ClientConfig
    isolation_level: str
    group_id: str


def read(
    settings: ConsumerSettings, wanted: OffsetRange, policy: ReadPolicy
) -> Iterator[list[Message]]:
    """The records of the range in order, a list for each call to the consumer."""
    if wanted.size == 0:
        return
    # Out of the pool while in use: a second range never moves the first one's consumer.
    consumer = _warm.pop(settings, None) or Consumer(_librdkafka(settings))
    try:
        yield from RangeReader(consumer, settings.client, wanted, policy).messages()
    except GeneratorExit:  # who reads wants no more
        _keep(settings, consumer)
        raise
    except BaseException:
        consumer.close()
        raise
    _keep(settings, consumer)


def _keep(settings: ConsumerSettings, consumer: Any) -> None:
    """Back to the pool: connected, fetching nothing, what was fetched beyond the range dropped."""
    consumer.unassign()
    _warm[settings] = consumer
    while len(_warm) > _MOST_WARM:
        _warm.pop(next(iter(_warm))).close()


def _librdkafka(settings: ConsumerSettings) -> dict[str, Any]:
    tuned = {name: value for name, value in _TUNING.items() if settings.client.get(name) is None}
    return settings.client.librdkafka(
        **tuned,
        **{
            "group.id": settings.group_id,
            "isolation.level": settings.isolation_level,
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
            "allow.auto.create.topics": False,
        },
    )
