"""Task. Consumers that are kept warm between ranges.

A consumer joins no group and commits nothing: it is assigned one partition at an exact offset for
as long as a range lasts. Between two ranges it keeps its connections and fetches nothing, so what
a worker holds in memory is bounded by the settings below and not by the partition.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from confluent_kafka import Consumer, Message

from spark_eos._kafka.config.client_config import ClientConfig, check_librdkafka
from spark_eos._kafka.consume.range_reader import RangeReader, ReadPolicy
from spark_eos._protocol.offsets.offset_range import OffsetRange

# What a user may change with kafka.*; the rest is fixed below.
_TUNING: Final = {
    "queued.max.messages.kbytes": 32 * 1024,  # the most that is fetched ahead
    "queued.min.messages": 20_000,  # enough to keep going; more is fetched in vain behind the range
    "fetch.wait.max.ms": 20,  # the end of a partition is told after this long
    "fetch.queue.backoff.ms": 5,  # else a full queue delays the next fetch by a second
    "log_level": 0,
}
# Both, or none where the user has one of them: they are compared.
_RECONNECT: Final = {"reconnect.backoff.ms": 10, "reconnect.backoff.max.ms": 1000}
# A worker has one for each cluster and isolation level that its query reads.
_MOST_WARM: Final = 4

_warm: dict["ConsumerSettings", Any] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerSettings:
    """What tells two consumers apart."""

    client: ClientConfig
    isolation_level: str
    group_id: str


def check_consumer(settings: ConsumerSettings) -> None:
    """Raise OptionError for a setting that a consumer of a task would fail with."""
    check_librdkafka(settings.client, _librdkafka(settings))


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
    client = settings.client
    tuned: dict[str, Any] = {n: value for n, value in _TUNING.items() if client.get(n) is None}
    if all(client.get(name) is None for name in _RECONNECT):
        tuned |= _RECONNECT
    return client.librdkafka(
        **tuned,
        **{
            "group.id": settings.group_id,
            "isolation.level": settings.isolation_level,
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
        },
    )
