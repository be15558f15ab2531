"""Task worker. Adds up the delivery reports of one task attempt, with or without a transaction."""

from collections.abc import Callable
from copy import copy

from confluent_kafka import KafkaError, Message

from spark_eos._kafka.to_error import Request, to_error
from spark_eos._protocol.offsets.topic_partition import PartitionOffsets
from spark_eos.errors import DeliveryError, SparkEosError

_PURGED = (KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT)


class DeliveryReports:
    """Counts, offsets and the first failure of one attempt."""

    def __init__(self, servers: str, transactional_id: str | None) -> None:
        self.failure: SparkEosError | None = None
        self._servers = servers
        self._transactional_id = transactional_id
        self._written: dict[str, dict[int, list[int]]] = {}
        self._callbacks: dict[str, Callable[[KafkaError | None, Message], None]] = {}

    def callback(self, topic: str) -> Callable[[KafkaError | None, Message], None]:
        """The delivery callback of a topic. It runs for each row, so it reads only what it must."""
        if topic in self._callbacks:
            return self._callbacks[topic]
        written = self._written[topic] = {}

        def on_delivery(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                if self.failure is None and error.code() not in _PURGED:
                    size = len(message.value() or b"") + len(message.key() or b"")
                    self.failure = self.to_error(error, topic, size)
                return
            partition: int = message.partition()  # type: ignore[assignment]
            offset: int = message.offset()  # type: ignore[assignment]
            offsets = written.get(partition)
            if offsets is None:
                written[partition] = [offset, offset, 1]
            else:
                offsets[1] = offset
                offsets[2] += 1

        self._callbacks[topic] = on_delivery
        return on_delivery

    @property
    def delivered(self) -> int:
        """The number of records that the broker took."""
        return sum(o[2] for written in self._written.values() for o in written.values())

    def to_error(
        self, error: KafkaError, topic: str | None = None, size: int | None = None
    ) -> SparkEosError:
        """The error for a refusal by librdkafka or a broker."""
        request = write_request(self._servers, self._transactional_id, topic, size)
        return to_error(error.code(), f"{error.str()} ({error.name()})", request)

    def raise_failure(self) -> None:
        """Raise the first failure, if there was one."""
        if self.failure is not None:
            # A copy: a raised error holds its frames, and they would keep the client alive.
            raise copy(self.failure)

    def partitions(self) -> tuple[PartitionOffsets, ...]:
        """What the transaction wrote. Raises for an unknown offset: recovery cannot look it up."""
        written = sorted(
            PartitionOffsets(
                topic=topic,
                partition=partition,
                first_offset=first,
                last_offset=last,
                records=records,
            )
            for topic, found in self._written.items()
            for partition, (first, last, records) in found.items()
        )
        if any(p.first_offset < 0 or p.last_offset < 0 for p in written):
            raise DeliveryError(
                "the broker took records of '{transactional_id}' and does not say at which offsets."
                " Run the task again",
                transactional_id=self._transactional_id,
            )
        return tuple(written)


def write_request(
    servers: str,
    transactional_id: str | None,
    topic: str | None = None,
    record_size: int | None = None,
) -> Request:
    """The request of a task. Without a transaction `transactional_id` is None."""
    record = "the write" if topic is None else f"a record for topic '{topic}'"
    on_topic = "the topic" if topic is None else f"topic '{topic}'"
    if transactional_id is None:
        to, rights = f"take {record}", " (brokers before 2.8: IDEMPOTENT_WRITE on the cluster too)"
    else:
        of_id = f"the transaction of '{transactional_id}'"
        to = f"go on with {of_id}" if topic is None else f"take {record} in {of_id}"
        rights = f" and on transactional id '{transactional_id}'"
    return Request(
        servers=servers,
        to=to,
        rights=f"WRITE and DESCRIBE on {on_topic}{rights}",
        topic=topic,
        transactional_id=transactional_id,
        is_write=True,
        record_size=record_size,
    )
