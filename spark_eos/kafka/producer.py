"""Task worker. The producer of one task attempt: one client, one epoch, one transaction.

librdkafka keeps a producer's epoch over its transactions (no bump at each end), so a delayed EndTxn
could end a *later* transaction of the same producer (KAFKA-17754). A client of its own for each
attempt makes (producer id, epoch) unique to one transaction, and that transaction can be ended from
another process by these two numbers. The client is dropped without ending it: the driver does.
"""

import json
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka import TopicPartition as ConfluentPartition

from spark_eos.errors import BrokerUnreachableError, DeliveryError, OptionError, SparkEosError
from spark_eos.kafka.client_config import ClientConfig
from spark_eos.kafka.delivery import DeliveryReports, refusal
from spark_eos.kafka.rows import Rows
from spark_eos.protocol.deadline import Deadline
from spark_eos.protocol.offset_limit import Offsets
from spark_eos.protocol.transaction import PreparedTransaction, ProducerIdentity

# Without the two back-offs `init_transactions` waits half a second on a retry timer.
_DEFAULTS: Final[dict[str, Any]] = {
    "partitioner": "murmur2_random",  # as the Java client: a key stays in its partition
    "retry.backoff.ms": 10,
    "reconnect.backoff.ms": 10,
}
# The statistics are the only public place where librdkafka tells the producer's id and epoch.
_STATISTICS_INTERVAL_MS: Final = 10
# Half of librdkafka's own limit, so that a batch is queued whole, and thereby in order.
_QUEUED_MESSAGES_MAX: Final = 50_000


class TransactionalProducer:
    """Sends the rows of one task attempt in one transaction and leaves it open."""

    def __init__(
        self, config: ClientConfig, transactional_id: str, *, timeout_ms: int, send_timeout_ms: int
    ) -> None:
        self._config = config
        self._transactional_id = transactional_id
        self._timeout_ms = timeout_ms
        self._send_timeout_ms = send_timeout_ms
        self._connected = False
        self._sent = 0
        self._reports = DeliveryReports(transactional_id)
        self._identity: ProducerIdentity | None = None
        settings = _DEFAULTS | config.librdkafka(
            **{
                "transactional.id": transactional_id,
                "transaction.timeout.ms": timeout_ms,
                "enable.idempotence": True,
                "acks": "all",
                "statistics.interval.ms": _STATISTICS_INTERVAL_MS,
                "stats_cb": self._on_statistics,
            }
        )
        try:
            self._producer = Producer(settings)
        except KafkaException as exception:
            reason = config.redact(exception.args[0].str())
            raise OptionError(f"an option kafka.*: {reason}") from None

    def partition_count(self, topic: str, deadline: Deadline) -> int:
        """How many partitions `topic` has. Also brings the connection up before its first use."""
        # The first answer may come before librdkafka counts the broker as usable, and
        # `init_transactions` would wait half a second for that. The second cannot.
        for _ in range(1 if self._connected else 2):
            try:
                metadata = self._producer.list_topics(topic, timeout=max(0.1, deadline.remaining_s))
            except KafkaException as exception:
                raise BrokerUnreachableError(
                    f"no answer about topic '{topic}' from kafka.bootstrap.servers"
                    f" {self._config.bootstrap_servers}: {exception.args[0].str()}"
                ) from None
        self._connected = True
        found = metadata.topics[topic]
        if found.error is not None or not found.partitions:
            raise OptionError(
                f"topic '{topic}' does not exist, or this user may not describe it. Create it, or"
                " correct the option or column 'topic'"
            )
        return len(found.partitions)

    def begin(self, deadline: Deadline) -> None:
        """Fence and abort what an earlier attempt left, then open this attempt's transaction."""
        try:
            self._producer.init_transactions(max(0.1, deadline.remaining_s))
            self._producer.begin_transaction()
        except KafkaException as exception:
            raise self._refusal(exception) from None

    def send(self, rows: Rows) -> None:
        """Queue rows of one topic, in order."""
        first = 0
        if rows.headers is None:
            messages = rows.messages()
            self._await_room(len(rows))
            try:
                first = self._producer.produce_batch(
                    rows.topic, messages, on_delivery=self._reports.callback(rows.topic)
                )
            except KafkaException as exception:
                raise self._refusal(exception, rows.topic) from None
            self._sent += first
            self._raise_refused(rows, messages, first)
        for row in range(first, len(rows)):
            self._send_row(rows, row)
        self._producer.poll(0)
        self._reports.raise_failure()

    def send_offsets(self, offsets: Offsets, metadata: object, deadline: Deadline) -> None:
        """Put the offsets of a consumer group into the transaction."""
        places = [ConfluentPartition(*place, offset) for place, offset in offsets.items()]
        try:
            self._producer.send_offsets_to_transaction(
                places, metadata, max(0.1, deadline.remaining_s)
            )
        except KafkaException as exception:
            raise self._refusal(exception) from None

    def prepare(self, deadline: Deadline) -> PreparedTransaction:
        """Flush, check every delivery report, and name the transaction, which stays open."""
        self._producer.flush(max(0.1, deadline.remaining_s))
        self._reports.raise_failure()
        if self._reports.delivered != self._sent:
            raise self._not_taken()
        while self._identity is None:
            if deadline.passed:
                raise DeliveryError(
                    f"no epoch in librdkafka's statistics: {self._transactional_id}"
                )
            self._producer.poll(0.002)
        return PreparedTransaction(
            identity=self._identity,
            transaction_timeout_ms=self._timeout_ms,
            partitions=self._reports.partitions(),
        )

    def abort(self, deadline: Deadline) -> None:
        """End the transaction after a failure, so that no reader waits for its time-out."""
        try:
            self._producer.purge()
            self._producer.abort_transaction(deadline.remaining_s)
        except KafkaException:
            # Fenced, timed out or out of reach: the next attempt or the driver ends it.
            return

    def _send_row(self, rows: Rows, row: int) -> None:
        message = rows.message(row)
        on_delivery = self._reports.callback(rows.topic)
        deadline: Deadline | None = None
        while True:
            try:
                self._producer.produce(rows.topic, on_delivery=on_delivery, **message)
            except BufferError:
                deadline = self._wait(deadline)
            except KafkaException as exception:
                size = len(message["value"] or b"") + len(message["key"] or b"")
                raise self._refusal(exception, rows.topic, size) from None
            else:
                self._sent += 1
                return

    def _raise_refused(self, rows: Rows, messages: list[dict[str, Any]], queued: int) -> None:
        """Tell a full queue, where the rest can be queued row by row, from a bad row."""
        refused = next((i for i, message in enumerate(messages) if "_error" in message), None)
        if refused is None:
            return
        error: KafkaError = messages[refused]["_error"]
        # librdkafka goes on behind a row that it has no room for: where a later row found room, to
        # queue this one now would put it behind a later row of its key.
        if error.code() != KafkaError._QUEUE_FULL or refused != queued:
            size = len(rows.values[refused] or b"") + len(rows.keys[refused] or b"")
            raise refusal(error, self._transactional_id, rows.topic, size)

    def _await_room(self, rows: int) -> None:
        deadline: Deadline | None = None
        while len(self._producer) > max(0, _QUEUED_MESSAGES_MAX - rows):
            deadline = self._wait(deadline)

    def _wait(self, deadline: Deadline | None) -> Deadline:
        """Let the broker take some rows; the time-out counts from the first wait."""
        deadline = deadline or Deadline.after_ms(self._send_timeout_ms)
        self._producer.poll(0.02)
        self._reports.raise_failure()
        if deadline.passed:
            raise self._not_taken()
        return deadline

    def _not_taken(self) -> BrokerUnreachableError:
        return BrokerUnreachableError(
            f"{self._config.bootstrap_servers} took {self._reports.delivered} of {self._sent}"
            f" records of {self._transactional_id} within {self._send_timeout_ms} ms."
            " Check that the brokers are up and that enough replicas are in sync"
        )

    def _refusal(
        self, exception: KafkaException, topic: str | None = None, size: int | None = None
    ) -> SparkEosError:
        error: KafkaError = exception.args[0]
        return refusal(error, self._transactional_id, topic, size)

    def _on_statistics(self, statistics: str) -> None:
        # An epoch does not change while its transaction can be committed: librdkafka bumps it only
        # after an error, and every error fails the attempt.
        if self._identity is None:
            eos = json.loads(statistics)["eos"]
            if eos["producer_epoch"] >= 0:
                self._identity = ProducerIdentity(
                    transactional_id=self._transactional_id,
                    producer_id=eos["producer_id"],
                    producer_epoch=eos["producer_epoch"],
                )
