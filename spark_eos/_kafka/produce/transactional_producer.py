"""Task worker. The producer of one task attempt: one client, one epoch, one transaction.

librdkafka keeps a producer's epoch over its transactions (no bump at each end), so a delayed EndTxn
could end a *later* transaction of the same producer (KAFKA-17754). A client of its own for each
attempt makes (producer id, epoch) unique to one transaction, and that transaction can be ended from
another process by these two numbers. The client is dropped without ending it: the driver does.
"""

import threading

from confluent_kafka import KafkaException
from confluent_kafka import TopicPartition as ConfluentPartition

from spark_eos._deadline import Deadline
from spark_eos._kafka.client_log import ClientLog
from spark_eos._kafka.config.client_config import ClientConfig
from spark_eos._kafka.produce.background_poller import BackgroundPoller
from spark_eos._kafka.produce.idempotent_producer import IdempotentProducer
from spark_eos._kafka.produce.producer_identity import ProducerIdentityCapture
from spark_eos._kafka.produce.rows import Rows
from spark_eos._protocol.offsets.topic_partition import Offsets
from spark_eos._protocol.transactions.transaction import PreparedTransaction
from spark_eos.errors import DeliveryError, SparkEosError


class TransactionalProducer(IdempotentProducer):
    """Sends the rows of one task attempt in one transaction and leaves it open."""

    def __init__(
        self,
        config: ClientConfig,
        transactional_id: str,
        *,
        timeout_ms: int,
        send_timeout_ms: int,
        log: ClientLog | None = None,
    ) -> None:
        self._timeout_ms = timeout_ms
        self._statistics = ProducerIdentityCapture(transactional_id)
        self._poller: BackgroundPoller | None = None
        self._in_use = threading.Lock()
        super().__init__(
            config,
            transactional_id,
            send_timeout_ms=send_timeout_ms,
            log=log,
            **{
                "transactional.id": transactional_id,
                "transaction.timeout.ms": timeout_ms,
                "statistics.interval.ms": ProducerIdentityCapture.interval_ms(),
                "stats_cb": self._statistics.take,
            },
        )

    def begin(self, deadline: Deadline) -> None:
        """Fence and abort what an earlier attempt left, then open this attempt's transaction."""
        try:
            self._producer.init_transactions(max(0.1, deadline.remaining_s))
            self._producer.begin_transaction()
        except KafkaException as exception:
            raise self._reports.to_error(exception.args[0]) from None
        self._poller = BackgroundPoller(self, self._name)

    def send(self, rows: Rows) -> None:
        """Queue rows of one topic, in order."""
        with self._in_use:
            self._reports.raise_failure()
            super().send(rows)

    def serve(self) -> None:
        """Between two sends, from another thread: take what librdkafka has to report."""
        if self._in_use.acquire(blocking=False):
            try:
                self._serve(self._producer.poll, 0)
            except SparkEosError as error:
                self._reports.failure = self._reports.failure or error.with_traceback(None)
            finally:
                self._in_use.release()

    def send_offsets(self, offsets: Offsets, metadata: object, deadline: Deadline) -> None:
        """Put the offsets of a consumer group into the transaction."""
        places = [ConfluentPartition(*place, offset) for place, offset in offsets.items()]
        try:
            self._producer.send_offsets_to_transaction(
                places, metadata, max(0.1, deadline.remaining_s)
            )
        except KafkaException as exception:
            raise self._reports.to_error(exception.args[0]) from None

    def prepare(self, deadline: Deadline) -> PreparedTransaction:
        """Flush, check every delivery report, and name the transaction, which stays open."""
        self._stop_poller()
        self.flush(deadline)
        while self._statistics.identity is None:
            if deadline.passed:
                raise DeliveryError(f"no epoch in librdkafka's statistics: {self._name}")
            self._serve(self._producer.poll, 0.002)
        return PreparedTransaction(
            identity=self._statistics.identity,
            transaction_timeout_ms=self._timeout_ms,
            partitions=self._reports.partitions(),
        )

    def abort(self, deadline: Deadline) -> None:
        """End the transaction after a failure, so that no reader waits for its time-out."""
        self._stop_poller()
        try:
            self._producer.purge()
            self._producer.abort_transaction(deadline.remaining_s)
        except KafkaException:
            # Fenced, timed out or out of reach: the next attempt or the driver ends it.
            return

    def _stop_poller(self) -> None:
        if self._poller is not None:
            self._poller.end()
            self._poller = None
