"""Driver. The partitions to read, and their offsets: earliest, latest, at a time."""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from confluent_kafka import IsolationLevel as ConfluentLevel
from confluent_kafka import KafkaException
from confluent_kafka import TopicPartition as ConfluentPartition
from confluent_kafka.admin import OffsetSpec  # type: ignore[attr-defined]

from spark_eos._deadline import OUTDATED_S, Backoff, Deadline
from spark_eos._kafka.admin.client import Admin, timeout_s
from spark_eos._kafka.admin.metadata import describe_topics
from spark_eos._kafka.config.client_config import ClientConfig
from spark_eos._kafka.to_error import NOT_AUTHORIZED
from spark_eos._kafka.topic_id import topic_id_text
from spark_eos._protocol.offsets.isolation import IsolationLevel
from spark_eos._protocol.offsets.subscription import Assign, Pattern, Subscribe, Subscription
from spark_eos._protocol.offsets.topic_partition import Offsets, TopicPartition
from spark_eos.errors import BrokerUnreachableError

T = TypeVar("T")

NO_SUCH_TIME: Final = -1
_EARLIEST: Final = OffsetSpec.earliest()  # type: ignore[no-untyped-call]
_LATEST: Final = OffsetSpec.latest()  # type: ignore[no-untyped-call]
_LONGEST_PAUSE_S: Final = 1.0
_ATTEMPT_S: Final = 5.0
_SHORTEST_ATTEMPT_S: Final = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Retries:
    """For how long, and at least how often, to ask while a leader moves or a broker restarts."""

    timeout_ms: int
    at_least: int
    interval_ms: int

    def pause_s(self, turn: int) -> float:
        """The pause after this turn. It doubles with each turn, up to a second."""
        return min(_LONGEST_PAUSE_S, self.interval_ms / 1000 * float(2 ** min(turn, 16)))


class OffsetReader:
    """Asks one cluster. The client is kept until a failure."""

    def __init__(
        self, config: ClientConfig, isolation_level: IsolationLevel, retries: Retries
    ) -> None:
        self._config = config
        self._isolation = ConfluentLevel[isolation_level.in_kafka.name]
        self._retries = retries
        self._admin = Admin(config)

    def partitions(self, subscription: Subscription) -> dict[TopicPartition, str | None]:
        """Each subscribed partition that exists, with its topic's id. None: it has no id."""
        found = self._again(lambda deadline: self._partitions(subscription, deadline))
        if isinstance(subscription, Assign):
            return {p: found[p] for p in subscription.partitions if p in found}
        return found

    def earliest(self, partitions: Iterable[TopicPartition]) -> Offsets:
        """The first offset of each partition that exists."""
        return self._list(dict.fromkeys(partitions, _EARLIEST))

    def latest(self, partitions: Iterable[TopicPartition]) -> Offsets:
        """The end of each partition that exists, at this isolation level."""
        return self._list(dict.fromkeys(partitions, _LATEST))

    def at(self, timestamps: Mapping[TopicPartition, int]) -> Offsets:
        """The first offset that is not older than the time. Absent if all are older."""
        specs = {p: OffsetSpec.for_timestamp(ms) for p, ms in timestamps.items()}
        return {p: o for p, o in self._list(specs).items() if o != NO_SUCH_TIME}

    def latest_not_behind(self, partitions: Iterable[TopicPartition], known: Offsets) -> Offsets:
        """The latest offsets. A new leader may be late, so one before `known` is asked again."""
        wanted = list(partitions)
        backoff = Backoff(Deadline.after_ms(self._retries.timeout_ms).at_most_s(OUTDATED_S))
        turn, goes_on = 0, True
        while True:
            turn += 1
            found = self._latest_or_held(wanted, known)
            is_behind = any(found[p] < known[p] for p in found if p in known)
            if not is_behind or (not goes_on and turn >= self._retries.at_least):
                return found
            goes_on = backoff.wait()

    def _latest_or_held(self, partitions: list[TopicPartition], known: Offsets) -> Offsets:
        """The latest offsets, or `known` if an earlier run has read into an open transaction."""
        found = self.latest(partitions)
        behind = [p for p in found if found[p] < known.get(p, 0)]
        if not behind or self._isolation is ConfluentLevel.READ_UNCOMMITTED:
            return found
        ends = self._list(dict.fromkeys(behind, _LATEST), ConfluentLevel.READ_UNCOMMITTED)
        return found | {p: known[p] for p, end in ends.items() if end >= known[p]}

    def _partitions(
        self, subscription: Subscription, deadline: Deadline
    ) -> dict[TopicPartition, str | None]:
        match subscription:
            case Assign(partitions):
                topics = [topic for topic, _ in partitions]
            case Subscribe(names):
                topics = list(names)
            case Pattern():
                topics = [t for t in self._topics(deadline) if subscription.matches(t)]
        return self._describe(topics, deadline)

    def _describe(
        self, topics: Iterable[str], deadline: Deadline
    ) -> dict[TopicPartition, str | None]:
        described = describe_topics(self._admin, topics, deadline)
        return {
            TopicPartition(topic, partition.id): topic_id_text(known.topic_id)
            for topic, known in described.items()
            if known is not None
            for partition in known.partitions
        }

    def _topics(self, deadline: Deadline) -> list[str]:
        try:
            return sorted(self._admin.client.list_topics(timeout=timeout_s(deadline)).topics)
        except KafkaException as exception:
            raise _TransientError(self._config.redact(exception.args[0].str())) from None

    def _list(
        self, specs: Mapping[TopicPartition, OffsetSpec], isolation: ConfluentLevel | None = None
    ) -> Offsets:
        """The offset for each specification, at the reader's isolation level or another one."""
        left, found, level = dict(specs), Offsets(), isolation or self._isolation
        if left:
            self._again(lambda deadline: self._list_once(left, found, level, deadline))
        return found

    def _list_once(
        self,
        left: dict[TopicPartition, OffsetSpec],
        found: Offsets,
        isolation: ConfluentLevel,
        deadline: Deadline,
    ) -> None:
        """Move answered partitions from `left` to `found`. Raise if others are left."""
        futures = self._admin.client.list_offsets(
            {ConfluentPartition(*partition): spec for partition, spec in left.items()},
            isolation_level=isolation,
            request_timeout=timeout_s(deadline),
        )
        troubles: dict[TopicPartition, str] = {}
        for place, future in futures.items():
            partition = TopicPartition(place.topic, place.partition)
            answer = self._answer(future, place, deadline)
            if isinstance(answer, str):
                troubles[partition] = answer
            else:
                found[partition] = answer
                del left[partition]
        there = self._describe({topic for topic, _ in troubles}, deadline)
        for partition in troubles.keys() - there.keys():  # it does not exist, and has no offset
            del left[partition]
        for partition, trouble in sorted(troubles.items()):
            if partition in there:
                raise _TransientError(f"{partition}: {trouble}")

    def _answer(self, future: Any, place: ConfluentPartition, deadline: Deadline) -> int | str:
        """The offset, or the reason why there is none."""
        asked = f"return offsets of topic '{place.topic}'"
        try:
            offset = self._admin.result(future, asked, deadline).offset
        except KafkaException as exception:
            if exception.args[0].code() in NOT_AUTHORIZED:
                rights = f"READ and DESCRIBE on topic '{place.topic}'"
                topic = str(place.topic)
                raise self._admin.to_error(exception, asked, rights, topic=topic) from None
            return self._config.redact(exception.args[0].str())
        # For a dead leader librdkafka may return -1001 and no error.
        return int(offset) if offset >= NO_SUCH_TIME else "no offset was returned"

    def _again(self, ask: Callable[[Deadline], T]) -> T:
        deadline = Deadline.after_ms(self._retries.timeout_ms)
        turn = 0
        while True:
            turn += 1
            # A request may wait for a dead leader. The next attempt finds the new one.
            left_s = min(max(deadline.remaining_s, _SHORTEST_ATTEMPT_S), _ATTEMPT_S)
            try:
                return ask(Deadline.after_ms(left_s * 1000))
            except (_TransientError, BrokerUnreachableError) as error:
                if deadline.passed and turn >= self._retries.at_least:
                    raise BrokerUnreachableError(
                        "{servers} did not return the offsets after {tries} tries in {timeout_ms}"
                        " ms (apiTimeoutMs): {reason}",
                        servers=self._config.bootstrap_servers,
                        tries=turn,
                        timeout_ms=self._retries.timeout_ms,
                        reason=str(error),
                    ) from None
            # A client goes on asking the old leader. A new client finds the new one.
            self._admin = Admin(self._config)
            time.sleep(self._retries.pause_s(turn))


class _TransientError(Exception):
    """The same request may succeed later."""
