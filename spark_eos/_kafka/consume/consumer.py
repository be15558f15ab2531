"""Task worker. Consumers that keep their connections between ranges (docs/design/source.md)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from confluent_kafka import Consumer, Message

from spark_eos._kafka.client_log import ClientLog
from spark_eos._kafka.config.client_config import ClientConfig, check_librdkafka
from spark_eos._kafka.consume.range_reader import RangeReader, ReadPolicy
from spark_eos._protocol.offsets.isolation import IsolationLevel
from spark_eos._protocol.offsets.topic_partition import OffsetRange

# Defaults that a user may change with kafka.*. They bound the memory of a worker.
_TUNING: Final = {
    "queued.max.messages.kbytes": 32 * 1024,  # the limit of what is fetched ahead
    "queued.min.messages": 20_000,  # enough to keep going; what is after the range is dropped
    "fetch.wait.max.ms": 20,  # the end of a partition is reported after this time
    "fetch.queue.backoff.ms": 5,  # else a full queue delays the next fetch by a second
    "log_level": 0,
}
# Both, or none if the user sets one of them: librdkafka compares the two.
_RECONNECT: Final = {"reconnect.backoff.ms": 10, "reconnect.backoff.max.ms": 1000}
# A worker needs one for each isolation level that its query reads at.
_MOST_WARM: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerSettings:
    """The settings in which consumers of one cluster differ."""

    isolation_level: IsolationLevel
    group_id: str


class ConsumerPool:
    """The connected consumers of one cluster that a process keeps."""

    def __init__(self, config: ClientConfig) -> None:
        self._config = config
        self._warm: dict[ConsumerSettings, Any] = {}

    def check_config(self, settings: ConsumerSettings) -> None:
        """Raise OptionError for a setting that a task's consumer would refuse."""
        check_librdkafka(self._config, self._librdkafka(settings))

    def read(
        self, settings: ConsumerSettings, wanted: OffsetRange, policy: ReadPolicy
    ) -> Iterator[list[Message]]:
        """The records of the range in order, as one list for each call to the consumer."""
        if wanted.size == 0:
            return
        # Out of the pool while in use: another range must not move this consumer.
        consumer = self._warm.pop(settings, None) or Consumer(self._librdkafka(settings))
        try:
            yield from RangeReader(consumer, self._config, wanted, policy).messages()
        except GeneratorExit:  # the caller stops reading
            self._keep(settings, consumer)
            raise
        except BaseException:
            consumer.close()
            raise
        self._keep(settings, consumer)

    def close(self) -> None:
        """Close every consumer that is not in use."""
        while self._warm:
            self._warm.popitem()[1].close()

    def _keep(self, settings: ConsumerSettings, consumer: Any) -> None:
        consumer.unassign()  # drops what was fetched after the range
        self._warm[settings] = consumer
        while len(self._warm) > _MOST_WARM:
            self._warm.pop(next(iter(self._warm))).close()

    def _librdkafka(self, settings: ConsumerSettings) -> dict[str, Any]:
        config = self._config
        tuned: dict[str, Any] = {n: value for n, value in _TUNING.items() if config.get(n) is None}
        if all(config.get(name) is None for name in _RECONNECT):
            tuned |= _RECONNECT
        return config.librdkafka(
            **tuned,
            **{
                "logger": ClientLog(f"consumer of {settings.group_id}"),
                "group.id": settings.group_id,
                "isolation.level": settings.isolation_level.value,
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "enable.partition.eof": True,
                "auto.offset.reset": "error",
            },
        )
