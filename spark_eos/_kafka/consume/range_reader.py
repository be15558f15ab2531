"""Task worker. Reads one range of one partition. docs/design/source.md says when a range ends."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition

from spark_eos._kafka.config.client_config import ClientConfig
from spark_eos._kafka.consume.data_loss import DataLoss
from spark_eos._kafka.to_error import Request, to_error
from spark_eos._protocol.offsets.topic_partition import OffsetRange
from spark_eos.errors import BrokerUnreachableError, SparkEosError

_OUT_OF_RANGE: Final = frozenset({KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE})
_GONE: Final = frozenset(
    {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_PARTITION, KafkaError._UNKNOWN_TOPIC}
)
_POLL_S: Final = 0.1
_WATERMARKS_S: Final = 30.0
_STALLED_S: Final = 2.0
# How many records a call asks for. It starts small, because a record may have a megabyte.
_FIRST_CALL: Final = 64
_LARGEST_CALL: Final = 20_000
_CALL_BYTES: Final = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPolicy:
    """What to do if records do not come."""

    poll_timeout_ms: int
    data_loss: DataLoss


class RangeReader:
    """Reads one range once."""

    def __init__(
        self, consumer: Any, client: ClientConfig, wanted: OffsetRange, policy: ReadPolicy
    ) -> None:
        self._consumer = consumer
        self._client = client
        self._range = wanted
        self._policy = policy
        self._position = wanted.start
        self._call = _FIRST_CALL
        self._last_progress = time.monotonic()
        self._last_look = self._last_progress
        self._times_gone = 0
        self._trouble = "neither a record nor the end was reported"

    def messages(self) -> Iterator[list[Message]]:
        """Lists of records until the end of the range."""
        self._assign(self._position)
        while self._position < self._range.end:
            records, events = self._take(), []
            if any(map(Message.error, records)):
                events = [m for m in records if m.error() is not None]
                records = [m for m in records if m.error() is None]
            if records:
                inside = self._advance(records)
                if inside:
                    self._size_next_call(inside)
                    yield inside
            for event in events:
                self._handle(event.error(), event.offset())
            if not records:
                self._check_timeout()

    def _advance(self, records: list[Any]) -> list[Any]:
        """Move the position after the records, and return those inside the range."""
        first, last = records[0].offset(), records[-1].offset()
        if first < self._position or last - first + 1 < len(records):
            raise SparkEosError(
                "{range}: the consumer at offset {offset} returned {records} records from {first}"
                " to {last}. Run the batch again",
                range=str(self._range),
                topic=self._range.topic,
                offset=self._position,
                records=len(records),
                first=first,
                last=last,
            )
        self._progress(last + 1)
        if last < self._range.end:
            return records
        return [record for record in records if record.offset() < self._range.end]

    def _take(self) -> list[Any]:
        """The records that are there. Waits only if there are none: a list may never be full."""
        left = self._range.end - self._position
        found: list[Any] = self._consumer.consume(min(self._call, left), 0)
        if not found:
            one = self._consumer.poll(_POLL_S)
            found = [] if one is None else [one]
        return found

    def _size_next_call(self, found: list[Any]) -> None:
        if len(found) == 1:
            return
        sampled = found[:: max(1, len(found) // 16)]
        average = max(1, sum(map(len, sampled)) // len(sampled))
        self._call = max(1, min(4 * self._call, _LARGEST_CALL, _CALL_BYTES // average))

    def _handle(self, error: Any, offset: Any) -> None:
        code = error.code()
        if code == KafkaError._PARTITION_EOF:
            if offset >= self._range.end:
                self._progress(self._range.end)
            else:
                self._trouble = f"the partition ends at {offset}"
        elif code in _OUT_OF_RANGE:
            self._out_of_range()
        elif code in _GONE:
            self._lost(self._position, self._range.end, "the partition does not exist any more")
        elif code == KafkaError.TOPIC_AUTHORIZATION_FAILED:
            topic = f"topic '{self._range.topic}'"
            request = Request(
                servers=self._client.bootstrap_servers,
                to=f"read {topic}",
                rights=f"READ on {topic}",
                topic=self._range.topic,
            )
            raise to_error(code, error.str(), request)
        else:
            self._trouble = self._client.redact(error.str())

    def _out_of_range(self) -> None:
        place = TopicPartition(self._range.topic, self._range.partition)
        try:
            first, end = self._consumer.get_watermark_offsets(place, timeout=_WATERMARKS_S)
        except KafkaException as exception:
            self._trouble = self._client.redact(exception.args[0].str())
            first, end = self._position, self._range.end  # unknown: try again
        if first > self._position:
            until = min(first, self._range.end)
            self._lost(self._position, until, f"the partition now starts at {first}")
            if until < self._range.end:
                self._assign(until)
        elif end < self._range.end:
            self._lost(self._position, self._range.end, f"the partition now ends at {end}")
        else:  # the error was from a leader with another view
            self._check_timeout()
            self._assign(self._position)

    def _lost(self, start: int, end: int, reason: str) -> None:
        place = self._range.topic_partition
        lost = f"{place}, offsets {start} to {end - 1}: {reason}"
        self._policy.data_loss.report(lost, topic=self._range.topic)
        self._progress(end)

    def _check_timeout(self) -> None:
        now = time.monotonic()
        waited_ms = (now - self._last_progress) * 1000
        if waited_ms < self._policy.poll_timeout_ms:
            if now - max(self._last_look, self._last_progress) > _STALLED_S:
                self._look_for_topic()
                self._last_look = time.monotonic()
            return
        raise BrokerUnreachableError(
            "{range}: nothing came at offset {offset} for {timeout_ms} ms"
            " (kafkaConsumer.pollTimeoutMs): {reason}",
            range=str(self._range),
            topic=self._range.topic,
            offset=self._position,
            timeout_ms=self._policy.poll_timeout_ms,
            reason=self._trouble,
        )

    def _look_for_topic(self) -> None:
        """librdkafka does not report a deleted topic to a consumer with an assignment."""
        topic = self._range.topic
        try:
            found = self._consumer.list_topics(topic, timeout=_STALLED_S).topics[topic]
        except KafkaException as exception:
            self._trouble = self._client.redact(exception.args[0].str())
            return
        gone = found.error is not None and found.error.code() in _GONE
        # Twice, because a broker that has just started may not know every topic.
        self._times_gone = self._times_gone + 1 if gone else 0
        if self._times_gone > 1:
            self._lost(self._position, self._range.end, "the topic does not exist any more")

    def _progress(self, position: int) -> None:
        self._position = max(position, self._position)
        self._last_progress = time.monotonic()

    def _assign(self, offset: int) -> None:
        self._consumer.assign([TopicPartition(self._range.topic, self._range.partition, offset)])
