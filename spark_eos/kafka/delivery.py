"""Task worker. What the broker took: every delivery report of one transaction, added up."""

from confluent_kafka import KafkaError, Message

from spark_eos.errors import DeliveryError, OptionError, SparkEosError
from spark_eos.protocol.transaction import PartitionOffsets

_PURGED = (KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT)


class DeliveryReports:
    """Counts, offsets and the first failure. Called by librdkafka from `poll` and `flush`."""

    def __init__(self, transactional_id: str) -> None:
        self.delivered = 0
        self.failure: SparkEosError | None = None
        self._transactional_id = transactional_id
        self._written: dict[tuple[str | None, int | None], list[int]] = {}

    def __call__(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            if self.failure is None and error.code() not in _PURGED:
                size = len(message.value() or b"") + len(message.key() or b"")
                self.failure = refusal(error, self._transactional_id, message.topic(), size)
            return
        self.delivered += 1
        offset: int = message.offset()  # type: ignore[assignment]  # a delivered record has one
        partition = (message.topic(), message.partition())
        written = self._written.get(partition)
        if written is None:
            self._written[partition] = [offset, offset, 1]
        else:
            written[1] = offset
            written[2] += 1

    def raise_failure(self) -> None:
        """Raise the first failure, if there was one."""
        if self.failure is not None:
            raise self.failure

    def partitions(self) -> tuple[PartitionOffsets, ...]:
        """What the transaction wrote, by topic partition."""
        return tuple(
            sorted(
                PartitionOffsets(
                    topic=str(topic),
                    partition=int(partition or 0),
                    first_offset=first,
                    last_offset=last,
                    records=records,
                )
                for (topic, partition), (first, last, records) in self._written.items()
            )
        )


def refusal(
    error: KafkaError, transactional_id: str, topic: str | None = None, size: int | None = None
) -> SparkEosError:
    """The error for what librdkafka or the broker refused, with the next step."""
    code = error.code()
    if code == KafkaError.MSG_SIZE_TOO_LARGE:
        return OptionError(
            f"a record of {size} bytes is larger than topic '{topic}' takes. Raise the topic's"
            " max.message.bytes and the option kafka.message.max.bytes, or write smaller records"
        )
    if code == KafkaError.INVALID_TRANSACTION_TIMEOUT:
        return OptionError(
            "kafka.transaction.timeout.ms is above the broker's transaction.max.timeout.ms."
            " Lower the option or raise the broker's setting"
        )
    if code in (KafkaError._UNKNOWN_TOPIC, KafkaError.UNKNOWN_TOPIC_OR_PART):
        return OptionError(f"topic '{topic}' does not exist. Create it, or correct 'topic'")
    if code == KafkaError._UNKNOWN_PARTITION:
        return OptionError(f"topic '{topic}' has no partition of the number in column 'partition'")
    if code in (
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    ):
        return OptionError(
            f"Kafka does not allow this user to write to topic '{topic}' with transactional id"
            f" {transactional_id} ({error.name()}). Grant WRITE and DESCRIBE on both"
        )
    if code in (KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH):
        return DeliveryError(
            f"the transaction of {transactional_id} was taken over or timed out"
            f" ({error.name()}): another attempt or driver uses this id, or"
            " kafka.transaction.timeout.ms is shorter than the task. Nothing of it is visible"
        )
    return DeliveryError(
        f"a record for topic '{topic}' in the transaction of {transactional_id} was not taken:"
        f" {error.str()} ({error.name()})"
        if topic
        else f"the transaction of {transactional_id} failed: {error.str()} ({error.name()})"
    )
