"""Task worker. Step 2: an idempotent producer. It cannot know what a retried task writes again."""

import ctypes
import sys
from collections.abc import Callable
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException, Producer

from spark_eos._deadline import NEW_TOPIC_S, Backoff, Deadline
from spark_eos._kafka.client_log import ClientLog
from spark_eos._kafka.config.client_config import ClientConfig
from spark_eos._kafka.produce.delivery import DeliveryReports
from spark_eos._kafka.produce.rows import Rows
from spark_eos._kafka.to_error import WRITTEN_AGAIN
from spark_eos.errors import BrokerUnreachableError, DeliveryError, OptionError

# Without the two back-offs `init_transactions` waits half a second on a retry timer.
_DEFAULTS: Final[dict[str, Any]] = {
    "partitioner": "murmur2_random",  # the Java client's: a key keeps its partition
    "retry.backoff.ms": 10,
    "reconnect.backoff.ms": 10,
}
# Half of librdkafka's own limit. A batch is then queued whole, and so in order.
_QUEUED_MESSAGES_MAX: Final = 50_000


class IdempotentProducer:
    """Sends the rows of one task attempt."""

    def __init__(
        self,
        config: ClientConfig,
        transactional_id: str | None,
        *,
        send_timeout_ms: int,
        log: ClientLog | None = None,
        **settings: Any,
    ) -> None:
        self._config = config
        self._transactional_id = transactional_id
        self._name = transactional_id or "this task"
        self._send_timeout_ms = send_timeout_ms
        self._connected = False
        self._sent = 0
        self._taken = 0  # how many were delivered when the time-out began to count
        self._reports = DeliveryReports(config.bootstrap_servers, transactional_id)
        fixed = {"enable.idempotence": True, "acks": "all", "logger": log or ClientLog(self._name)}
        try:
            self._producer = Producer(_DEFAULTS | config.librdkafka(**fixed | settings))
        except KafkaException as exception:
            reason = config.redact(exception.args[0].str())
            raise OptionError("an option kafka.*: {reason}", reason=reason) from None

    def partition_count(self, topic: str, deadline: Deadline) -> int:
        """The number of partitions of the topic. The first call opens the connection."""
        if not self._connected:
            # The first answer may come before librdkafka counts the broker as usable. Then
            # `init_transactions` waits half a second. After a second answer it does not.
            self._partition_count(topic, deadline)
            self._connected = True
        backoff = Backoff(deadline.at_most_s(NEW_TOPIC_S))
        while not (count := self._partition_count(topic, deadline)):
            if not backoff.wait():
                raise OptionError(
                    "topic '{topic}' does not exist, or this user may not describe it. Create it,"
                    " or correct the option or column 'topic'",
                    topic=topic,
                )
        return count

    def _partition_count(self, topic: str, deadline: Deadline) -> int:
        """The number of partitions of the topic; 0 if the broker does not know the topic."""
        try:
            metadata = self._producer.list_topics(topic, timeout=max(0.1, deadline.remaining_s))
        except KafkaException as exception:
            raise BrokerUnreachableError(
                "{servers} did not describe topic '{topic}': {reason}",
                servers=self._config.bootstrap_servers,
                topic=topic,
                reason=self._config.redact(exception.args[0].str()),
            ) from None
        found = metadata.topics[topic]
        return 0 if found.error is not None else len(found.partitions)

    def begin(self, deadline: Deadline) -> None:
        """Prepare for the first row."""

    def send(self, rows: Rows) -> None:
        """Queue rows of one topic, in order."""
        first = 0
        if rows.only_keys_and_values:
            messages = rows.messages()
            self._await_room(len(rows))
            try:
                first = self._producer.produce_batch(
                    rows.topic, messages, on_delivery=self._reports.callback(rows.topic)
                )
            except KafkaException as exception:
                raise self._reports.to_error(exception.args[0], rows.topic) from None
            self._sent += first
            self._raise_refused(rows, messages, first)
        for row in range(first, len(rows)):
            self._send_row(rows, row)
        self._serve(self._producer.poll, 0)
        self._reports.raise_failure()

    def flush(self, deadline: Deadline) -> None:
        """Return when the broker took every row. A slow broker has time while it takes rows."""
        while True:
            taken = self._reports.delivered
            self._serve(self._producer.flush, max(0.1, deadline.remaining_s))
            self._reports.raise_failure()
            if self._reports.delivered == self._sent:
                return
            if self._reports.delivered == taken:
                raise self._not_taken()
            deadline = Deadline.after_ms(self._send_timeout_ms)

    def abort(self, deadline: Deadline) -> None:  # noqa: ARG002
        """Drop the queued rows."""
        self._producer.purge()

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
                raise self._reports.to_error(exception.args[0], rows.topic, size) from None
            else:
                self._sent += 1
                return

    def _raise_refused(self, rows: Rows, messages: list[dict[str, Any]], queued: int) -> None:
        """Raise for a bad row. After a full queue the caller sends the rest row by row."""
        refused = next((i for i, message in enumerate(messages) if "_error" in message), None)
        if refused is None:
            return
        error: KafkaError = messages[refused]["_error"]
        # librdkafka goes on after a row without room. If a later row had room, this one would come
        # after it, although both may have one key.
        if error.code() != KafkaError._QUEUE_FULL or refused != queued:
            size = len(rows.values[refused] or b"") + len(rows.keys[refused] or b"")
            raise self._reports.to_error(error, rows.topic, size)

    def _await_room(self, rows: int) -> None:
        deadline: Deadline | None = None
        while len(self._producer) > max(0, _QUEUED_MESSAGES_MAX - rows):
            deadline = self._wait(deadline)

    def _wait(self, deadline: Deadline | None) -> Deadline:
        """Let the broker take rows. The time-out counts from the last row that it took."""
        if deadline is None or self._reports.delivered > self._taken:
            self._taken = self._reports.delivered
            deadline = Deadline.after_ms(self._send_timeout_ms)
        self._serve(self._producer.poll, 0.02)
        self._reports.raise_failure()
        if deadline.passed:
            raise self._not_taken()
        return deadline

    def _serve(self, call: Callable[[float], object], timeout_s: float) -> None:
        """Let librdkafka call back. docs/upstream.md has the forms in which errors come."""
        failed: Any = None
        try:
            call(timeout_s)
        except KafkaException as exception:
            failed = exception.args[0]
        except SystemError as error:
            _forget_frames(error, error.__cause__)
            self._reports.raise_failure()
            raise DeliveryError(
                "the producer of {producer} failed and cannot go on. {visible}",
                producer=self._name,
                transactional_id=self._transactional_id,
                visible=WRITTEN_AGAIN
                if self._transactional_id is None
                else "Another attempt or driver uses its id, or its transaction timed out. Nothing"
                " of it is visible",
            ) from None
        except BaseException:
            raise
        except:  # noqa: E722 - the only clause that catches what is no exception
            failed = sys.exc_info()[1]
            _forget_frames(failed)
        if failed is not None:
            raise self._reports.to_error(failed)

    def _not_taken(self) -> BrokerUnreachableError:
        return BrokerUnreachableError(
            "{servers} took {taken} of {sent} records of {producer}, and then none for {timeout_ms}"
            " ms. Check that the brokers are up, that enough replicas are in sync, and the quotas"
            " of this user{visible}",
            servers=self._config.bootstrap_servers,
            taken=self._reports.delivered,
            sent=self._sent,
            producer=self._name,
            transactional_id=self._transactional_id,
            timeout_ms=self._send_timeout_ms,
            visible="" if self._transactional_id else f". {WRITTEN_AGAIN}",
        )


def _forget_frames(*errors: Any) -> None:
    """Free the frames of errors that confluent keeps: they would keep this producer alive."""
    for error in errors:
        if error is not None:
            ctypes.pythonapi.PyException_SetTraceback(
                ctypes.py_object(error), ctypes.py_object(None)
            )
