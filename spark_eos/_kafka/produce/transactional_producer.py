"""Task worker. Steps 2 and 3: one client, one epoch and one transaction for each task attempt.

librdkafka keeps its epoch between transactions, so a delayed EndTxn could end a *later* transaction
of the same client (KAFKA-17754). The task drops the client, and the driver ends the transaction.
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
    """Sends the rows of one task attempt in one transaction, which stays open."""

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
        """Fence and abort an earlier attempt, then open this attempt's transaction."""
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
        """Take librdkafka's reports between two sends. Another thread calls this."""
        if self._in_use.acquire(blocking=False):
            try:
                self._serve(self._producer.poll, 0)
            except SparkEosError as error:
                self._reports.failure = self._reports.failure or error.with_traceback(None)
            finally:
                self._in_use.release()

    def send_offsets(self, offsets: Offsets, metadata: object, deadline: Deadline) -> None:
        """Add the offsets of a consumer group to the transaction."""
        places = [ConfluentPartition(*place, offset) for place, offset in offsets.items()]
        limit_s = max(0.1, deadline.remaining_s)
        try:
            self._producer.send_offsets_to_transaction(places, metadata, limit_s)
        except KafkaException as exception:
            raise self._reports.to_error(exception.args[0]) from None

    def prepare(self, deadline: Deadline) -> PreparedTransaction:
        """Flush, check every delivery report, and return the open transaction."""
        self._stop_poller()
        self.flush(deadline)
        while self._statistics.identity is None:
            if deadline.passed:
                raise DeliveryError(
                    "librdkafka reported no epoch of '{transactional_id}'. Run the task again",
                    transactional_id=self._transactional_id,
                )
            self._serve(self._producer.poll, 0.002)
        return PreparedTransaction(
            identity=self._statistics.identity,
            transaction_timeout_ms=self._timeout_ms,
            partitions=self._reports.partitions(),
        )

    def abort(self, deadline: Deadline) -> None:
        """Abort the transaction after a failure. Else readers wait for its time-out."""
        self._stop_poller()
        try:
            self._producer.purge()
            self._producer.abort_transaction(deadline.remaining_s)
        except KafkaException:
            # Fenced, timed out or unreachable: the next attempt or the driver ends it.
            return

    def _stop_poller(self) -> None:
        if self._poller is not None:
            self._poller.end()
            self._poller = None
