"""Driver. Reports what a consumer finds at given offsets."""

from collections.abc import Iterable
from enum import Enum
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, Message
from confluent_kafka import TopicPartition as ConfluentPartition

from spark_eos._deadline import Deadline
from spark_eos._kafka.config.client_config import ClientConfig
from spark_eos._kafka.to_error import Request, to_error
from spark_eos._protocol.offsets.isolation import IsolationLevel
from spark_eos._protocol.offsets.topic_partition import RecordPosition, TopicPartition

POLL_S: Final = 0.05
# After this time the caller looks again: the partition's leader may have moved.
ATTEMPT_S: Final = 5.0


class ProbeResult(Enum):
    """What a consumer finds at an offset."""

    HERE = "the record itself"
    BEHIND = "a later record, or an end that is later"
    END = "the end, exactly there: nothing"
    OUTSIDE = "no such offset"


_OUTSIDE = frozenset({KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE})


class OffsetProbe:
    """One consumer, created with the first look. It joins no group."""

    def __init__(self, config: ClientConfig, isolation: IsolationLevel) -> None:
        self._servers = config.bootstrap_servers
        self._settings = config.librdkafka(
            **{
                "group.id": "spark-eos",  # required, but nothing is subscribed or committed
                "isolation.level": isolation.value,
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "enable.partition.eof": True,
                "auto.offset.reset": "error",
                "client.rack": "",  # a follower in the client's rack may lag or hang
                "fetch.wait.max.ms": 10,  # the end of a partition is reported after this time
                "queued.min.messages": 1,  # one record is enough
                "fetch.queue.backoff.ms": 1,  # else a full queue delays the next look by 1 s
                "reconnect.backoff.ms": 10,
                "statistics.interval.ms": 0,
                "log_level": 0,
            }
        )
        self._consumer: Any = None

    def look(
        self, places: Iterable[RecordPosition], deadline: Deadline
    ) -> dict[RecordPosition, ProbeResult]:
        """The result at each place, one place per partition. Absent: no answer."""
        waiting = {place.topic_partition: place for place in places}
        seen: dict[RecordPosition, ProbeResult] = {}
        if not waiting:
            return seen
        consumer: Any = self._consumer or Consumer(self._settings)
        self._consumer = consumer
        consumer.assign([ConfluentPartition(*place) for place in waiting.values()])
        attempt = deadline.at_most_s(ATTEMPT_S)
        while waiting and not attempt.passed:
            message = consumer.poll(min(POLL_S, attempt.remaining_s))
            if message is None:
                continue
            place = waiting.get(TopicPartition(message.topic(), message.partition()))
            if place is not None and (result := _result(message, place, self._servers)):
                seen[place] = result
                del waiting[place.topic_partition]
        consumer.unassign()
        return seen

    def close(self) -> None:
        """Close the consumer, if there is one."""
        if self._consumer is not None:
            self._consumer.close()


def _result(message: Message, place: RecordPosition, servers: str) -> ProbeResult | None:
    error, offset = message.error(), message.offset()
    if error is not None:
        code = error.code()
        if code in _OUTSIDE:
            return ProbeResult.OUTSIDE
        if code == KafkaError.TOPIC_AUTHORIZATION_FAILED:
            topic = f"topic '{place.topic}'"
            to = f"read {topic}, whose records show what was committed"
            request = Request(servers=servers, to=to, rights=f"READ on {topic}", topic=place.topic)
            raise to_error(code, error.str(), request)
        if code != KafkaError._PARTITION_EOF:
            return None
        return ProbeResult.END if offset == place.offset else ProbeResult.BEHIND
    return ProbeResult.HERE if offset == place.offset else ProbeResult.BEHIND
