"""Driver. What partitions there are, and which offsets: earliest, latest, at a time.

What passes by itself (a leader that moves, a broker that restarts) is asked again: at least
`num_retries` times, and as long as the deadline lasts.
"""

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
_LONGEST_PAUSE_S: Final = 1.0
_ATTEMPT_S: Final = 5.0
_SHORTEST_ATTEMPT_S: Final = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Retries:
    """How long and how often to ask again."""

    timeout_ms: int
    at_least: int
    interval_ms: int

    def pause_s(self, turn: int) -> float:
        """How long to wait after this turn: twice as long each time, up to a second."""
        return min(_LONGEST_PAUSE_S, self.interval_ms / 1000 * float(2 ** min(turn, 16)))


class OffsetReader:
    """Asks one cluster, with one client that is kept."""

    def __init__(
        self, config: ClientConfig, isolation_level: IsolationLevel, retries: Retries
    ) -> None:
        self._config = config
        self._isolation = ConfluentLevel[isolation_level.in_kafka.name]
        self._retries = retries
        self._admin = Admin(config)

    def partitions(self, subscription: Subscription) -> dict[TopicPartition, str | None]:
        """Each partition that exists of those to be read, with the id of its topic.

        The id is None where the cluster gives its topics no ids.
        """
        found = self._again(lambda deadline: self._partitions(subscription, deadline))
        if isinstance(subscription, Assign):
            return {p: found[p] for p in subscription.partitions if p in found}
        return found

    def earliest(self, partitions: Iterable[TopicPartition]) -> Offsets:
        """The first offset that is there; absent for a partition that is not."""
        spec = OffsetSpec.earliest()  # type: ignore[no-untyped-call]
        return self._list(dict.fromkeys(partitions, spec))

    def latest(self, partitions: Iterable[TopicPartition]) -> Offsets:
        """Where this isolation level ends; absent for a partition that is not there."""
        spec = OffsetSpec.latest()  # type: ignore[no-untyped-call]
        return self._list(dict.fromkeys(partitions, spec))

    def at(self, timestamps: Mapping[TopicPartition, int]) -> Offsets:
        """The first offset that is not older than the time; absent where all are older."""
        specs = {p: OffsetSpec.for_timestamp(ms) for p, ms in timestamps.items()}
        return {p: o for p, o in self._list(specs).items() if o != NO_SUCH_TIME}

    def latest_not_behind(self, partitions: Iterable[TopicPartition], known: Offsets) -> Offsets:
        """The latest offsets; one that lies before what was read already is asked for again.

        A leader that has just been elected may not know for a moment how far its log is committed.
        """
        wanted = list(partitions)
        backoff = Backoff(Deadline.after_ms(self._retries.timeout_ms).at_most_s(OUTDATED_S))
        turn, goes_on = 0, True
        while True:
            turn += 1
            found = self._latest_or_held(wanted, known)
            if all(found[p] >= known[p] for p in found if p in known):
                return found
            if not goes_on and turn >= self._retries.at_least:
                return found
            goes_on = backoff.wait()

    def _latest_or_held(self, partitions: list[TopicPartition], known: Offsets) -> Offsets:
        """The latest offsets, but `known` where it lies behind an open transaction.

        Whoever read at read_uncommitted may have read into it. Nothing of that is gone, and until
        it ends nothing is new.
        """
        found = self.latest(partitions)
        behind = [p for p in found if found[p] < known.get(p, 0)]
        if not behind or self._isolation is ConfluentLevel.READ_UNCOMMITTED:
            return found
        spec = OffsetSpec.latest()  # type: ignore[no-untyped-call]
        ends = self._list(dict.fromkeys(behind, spec), ConfluentLevel.READ_UNCOMMITTED)
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
            raise _PassingError(self._config.redact(exception.args[0].str())) from None

    def _list(
        self, specs: Mapping[TopicPartition, OffsetSpec], isolation: ConfluentLevel | None = None
    ) -> Offsets:
        """What each specification is in numbers, at the reader's isolation level or another one."""
        found: Offsets = {}
        left = dict(specs)

        def turn(deadline: Deadline) -> Offsets:
            self._list_once(left, found, isolation or self._isolation, deadline)
            return found

        return self._again(turn) if left else found

    def _list_once(
        self,
        left: dict[TopicPartition, OffsetSpec],
        found: Offsets,
        isolation: ConfluentLevel,
        deadline: Deadline,
    ) -> None:
        """Move what is answered from `left` to `found`; raise where some are not."""
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
        if not troubles:
            return
        topics = {topic for topic, _ in troubles}
        there = self._describe(topics, deadline)
        for partition in troubles.keys() - there.keys():  # it does not exist: that is the answer
            del left[partition]
        for partition, trouble in sorted(troubles.items()):
            if partition in there:
                raise _PassingError(f"{partition}: {trouble}")

    def _answer(self, future: Any, place: ConfluentPartition, deadline: Deadline) -> int | str:
        """The offset, or a text where there is none."""
        asked = f"tell offsets of topic '{place.topic}'"
        try:
            told = self._admin.result(future, asked, deadline).offset
        except KafkaException as exception:
            if exception.args[0].code() in NOT_AUTHORIZED:
                rights = f"READ and DESCRIBE on topic '{place.topic}'"
                raise self._admin.to_error(exception, asked, rights) from None
            return self._config.redact(exception.args[0].str())
        # librdkafka may end a question to a leader that died with -1001 and without an error.
        return int(told) if told >= NO_SUCH_TIME else "no offset was told"

    def _again(self, ask: Callable[[Deadline], T]) -> T:
        deadline = Deadline.after_ms(self._retries.timeout_ms)
        turn = 0
        while True:
            turn += 1
            # A question that waits for a dead leader is given up for one that finds the new one.
            left_s = min(max(deadline.remaining_s, _SHORTEST_ATTEMPT_S), _ATTEMPT_S)
            attempt = Deadline.after_ms(left_s * 1000)
            try:
                return ask(attempt)
            except (_PassingError, BrokerUnreachableError) as error:
                if deadline.passed and turn >= self._retries.at_least:
                    raise BrokerUnreachableError(
                        f"{self._config.bootstrap_servers} did not tell the offsets after {turn} "
                        f"tries in {self._retries.timeout_ms} ms (apiTimeoutMs): {error}"
                    ) from None
            # A client goes on asking the leader it knows; a new one asks who leads.
            self._admin = Admin(self._config)
            time.sleep(self._retries.pause_s(turn))


class _PassingError(Exception):
    """Asking again may help."""
