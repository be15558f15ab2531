"""Task worker. What the broker took: every delivery report of one task attempt, added up.

An attempt has one transaction, or none where the guarantee is at_least_once. Then what the broker
took is visible at once and stays, and the texts of the errors say so.
"""

from collections.abc import Callable
from copy import copy

from confluent_kafka import KafkaError, Message

from spark_eos._protocol.offsets.topic_partition import PartitionOffsets
from spark_eos.errors import DeliveryError, OptionError, SparkEosError

# Deterministic: the same row is refused each time.
_ROW_REFUSED = {
    KafkaError.INVALID_TIMESTAMP: "See column 'timestamp' and the topic's"
    " message.timestamp.before.max.ms and message.timestamp.after.max.ms",
    KafkaError.INVALID_RECORD: "A compacted topic needs a key in each row, see column 'key'. See"
    " also the topic's message.timestamp.before.max.ms and message.timestamp.after.max.ms",
    KafkaError.POLICY_VIOLATION: "A policy of the brokers refuses it",
}
_NOT_ALLOWED = (
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
)
# What holds after a failure where there is no transaction.
WRITTEN_AGAIN = (
    "What the broker took before stays visible (deliveryGuarantee at_least_once), and the next try"
    " writes it again"
)
_PURGED = (KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT)


class DeliveryReports:
    """Counts, offsets and the first failure, for every record of one attempt."""

    def __init__(self, transactional_id: str | None) -> None:
        self.failure: SparkEosError | None = None
        self._transactional_id = transactional_id
        self._written: dict[str, dict[int, list[int]]] = {}
        self._callbacks: dict[str, Callable[[KafkaError | None, Message], None]] = {}

    def callback(self, topic: str) -> Callable[[KafkaError | None, Message], None]:
        """What librdkafka calls from `poll` and `flush`, once for each record of `topic`.

        It runs once a row, so it asks the message for nothing that is known without it.
        """
        if topic in self._callbacks:
            return self._callbacks[topic]
        written = self._written[topic] = {}

        def on_delivery(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                self._fail(error, topic, message)
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
        """How many records the broker has taken."""
        return sum(o[2] for written in self._written.values() for o in written.values())

    def _fail(self, error: KafkaError, topic: str, message: Message) -> None:
        if self.failure is None and error.code() not in _PURGED:
            size = len(message.value() or b"") + len(message.key() or b"")
            self.failure = refusal(error, self._transactional_id, topic, size)

    def raise_failure(self) -> None:
        """Raise the first failure, if there was one."""
        if self.failure is not None:
            # What is raised holds its frames, and they this: a client would outlive its task.
            raise copy(self.failure)

    def partitions(self) -> tuple[PartitionOffsets, ...]:
        """What the transaction wrote, by topic partition.

        librdkafka counts a record as delivered also where the broker has it already and does not
        say at which offset. Recovery could not look at such a place.
        """
        written = self._partitions()
        if any(p.first_offset < 0 or p.last_offset < 0 for p in written):
            raise DeliveryError(
                f"the broker has taken records of {self._transactional_id} and does not say at"
                " which offsets. The task is to be tried again"
            )
        return written

    def _partitions(self) -> tuple[PartitionOffsets, ...]:
        return tuple(
            sorted(
                PartitionOffsets(
                    topic=topic,
                    partition=partition,
                    first_offset=first,
                    last_offset=last,
                    records=records,
                )
                for topic, written in self._written.items()
                for partition, (first, last, records) in written.items()
            )
        )


def refusal(
    error: KafkaError,
    transactional_id: str | None,
    topic: str | None = None,
    size: int | None = None,
) -> SparkEosError:
    """The error for what librdkafka or the broker refused, with the next step.

    `transactional_id` is None for a write without a transaction.
    """
    code = error.code()
    if code == KafkaError.MSG_SIZE_TOO_LARGE:
        return OptionError(
            f"a record of {size} bytes, or the batch that librdkafka put it into, is larger than"
            f" topic '{topic}' takes. Raise the topic's max.message.bytes and the option"
            " kafka.message.max.bytes, or write smaller records; where records are small, lower"
            " kafka.batch.size to below max.message.bytes"
        )
    if code in _ROW_REFUSED:
        return OptionError(
            f"topic '{topic}' does not take a record as it is: {error.str()} ({error.name()})."
            f" {_ROW_REFUSED[code]}"
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
    if code in _NOT_ALLOWED:
        return _not_allowed(error, transactional_id, topic)
    return _not_taken(error, transactional_id, topic)


def _not_taken(error: KafkaError, transactional_id: str | None, topic: str | None) -> DeliveryError:
    code = error.code()
    if transactional_id is None:
        what = "the write" if topic is None else f"a record for topic '{topic}'"
        return DeliveryError(
            f"{what} was not taken: {error.str()} ({error.name()}). {WRITTEN_AGAIN}"
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


def _not_allowed(error: KafkaError, transactional_id: str | None, topic: str | None) -> OptionError:
    place = "" if topic is None else f" to topic '{topic}'"
    allowed = f"Kafka does not allow this user to write{place}"
    if transactional_id is None:
        return OptionError(
            f"{allowed} ({error.name()}). Grant WRITE and DESCRIBE on the topic; brokers"
            " before 2.8 want IDEMPOTENT_WRITE on the cluster too"
        )
    return OptionError(
        f"{allowed} with transactional id {transactional_id} ({error.name()}). Grant WRITE and"
        " DESCRIBE on both, the topic and the id"
    )
