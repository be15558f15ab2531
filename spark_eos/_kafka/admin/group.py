"""Driver. The consumer group whose offsets move with a query's batches (docs/design/kafka.md)."""

import json
import time
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaError, KafkaException
from confluent_kafka import TopicPartition as ConfluentPartition

from spark_eos._deadline import Deadline
from spark_eos._kafka.admin.client import Admin, timeout_s
from spark_eos._kafka.config.client_config import ClientConfig
from spark_eos._kafka.to_error import TRANSIENT
from spark_eos._protocol.offsets.isolation import IsolationLevel
from spark_eos._protocol.offsets.offset_map import from_map
from spark_eos._protocol.offsets.topic_partition import Offsets, TopicPartition
from spark_eos._protocol.transactions.fate import Fate
from spark_eos.errors import BrokerUnreachableError, GroupInUseError, SparkEosError

T = TypeVar("T")

_LOOK_EVERY_S: Final = 0.02
_ATTEMPT_S: Final = 5.0  # then a new client asks: the coordinator may have moved
_WHY_MS: Final = 1_000
# The answers to an offset commit from outside, for a group with members and for a missing topic.
_NOT_TAKEN: Final = frozenset(
    {
        KafkaError.UNKNOWN_MEMBER_ID,
        KafkaError.ILLEGAL_GENERATION,
        KafkaError.REBALANCE_IN_PROGRESS,
        KafkaError.NON_EMPTY_GROUP,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
    }
)


class ConsumerGroups:
    """The groups of one cluster, seen from outside: this client joins none."""

    def __init__(self, config: ClientConfig) -> None:
        self._config = config
        self._admin: Admin | None = None
        self._consumers: dict[str, Any] = {}  # by group, for its metadata only

    def metadata(self, group_id: str) -> object:
        """The group metadata that a producer sends with offsets."""
        if group_id not in self._consumers:
            settings = {"group.id": group_id, "enable.auto.commit": False, "log_level": 0}
            self._consumers[group_id] = Consumer(self._config.librdkafka(**settings))
        return self._consumers[group_id].consumer_group_metadata()

    def check_not_in_use(self, group_id: str, deadline: Deadline) -> None:
        """Raise if a consumer is a member of the group."""

        def ask(admin: Admin) -> Any:
            describe, limit_s = admin.client.describe_consumer_groups, timeout_s(deadline)
            future = describe([group_id], request_timeout=limit_s)[group_id]
            return admin.result(future, f"describe group '{group_id}'", deadline).members

        members = self._ask(group_id, ask, deadline) or []
        if members:
            raise GroupInUseError(
                "consumer '{client}' at {host} is a member of group '{group_id}', which this query"
                " moves. Each would read what the other has read. Nothing was decided. Stop one of"
                " the two: the other goes on where the stopped one ended",
                client=members[0].client_id,
                host=members[0].host,
                group_id=group_id,
            )

    def committed_offsets(
        self, group_id: str, partitions: Sequence[TopicPartition], deadline: Deadline
    ) -> Offsets:
        """The committed offset of each partition that has one. Waits for open transactions."""
        while True:
            try:
                return self._committed(
                    group_id, partitions, IsolationLevel.READ_COMMITTED, deadline
                )
            except KafkaException as exception:
                code = exception.args[0].code()
                if code not in TRANSIENT and code >= 0:
                    admin = self._admin or Admin(self._config)
                    raise _to_error(admin, exception, group_id) from None
            if deadline.passed:
                raise self._not_told(group_id, partitions)
            time.sleep(_LOOK_EVERY_S)

    def put_offsets(self, group_id: str, offsets: Offsets, deadline: Deadline) -> Offsets:
        """Commit offsets of a group. Returns those that the broker took: none if it has members."""

        def ask(admin: Admin) -> Offsets:
            places = [ConfluentPartition(*place, offset) for place, offset in offsets.items()]
            futures = admin.client.alter_consumer_group_offsets(
                [ConsumerGroupTopicPartitions(group_id, places)],
                request_timeout=timeout_s(deadline),
            )
            asked = f"commit offsets of group '{group_id}'"
            answer = admin.result(futures[group_id], asked, deadline)
            for place in answer.topic_partitions:
                if place.error is not None and place.error.code() not in _NOT_TAKEN:
                    raise KafkaException(place.error)
            taken = [place for place in answer.topic_partitions if place.error is None]
            return {TopicPartition(place.topic, place.partition): place.offset for place in taken}

        return self._ask(group_id, ask, deadline) or {}

    def offsets_fate(self, group_id: str, wanted: str, deadline: Deadline) -> Fate:
        """The fate of a transaction with the offsets `wanted`. Only this query moves the group."""
        logged = from_map(json.loads(wanted))
        now = self.committed_offsets(group_id, list(logged), deadline)
        # An expired offset counts as not moved: to send it again does no harm.
        moved = all(now.get(partition, -1) >= offset for partition, offset in logged.items())
        return Fate.COMMITTED if moved else Fate.ABORTED

    def close(self) -> None:
        """Close the consumers. An admin client closes itself when it is dropped."""
        while self._consumers:
            self._consumers.popitem()[1].close()
        self._admin = None

    def _committed(
        self,
        group_id: str,
        partitions: Sequence[TopicPartition],
        isolation_level: IsolationLevel,
        deadline: Deadline,
    ) -> Offsets:
        """Ask once, with a consumer: an admin client may end the process (librdkafka #5040)."""
        settings = {
            "group.id": group_id,
            "isolation.level": isolation_level.value,
            "enable.auto.commit": False,
            "reconnect.backoff.ms": 10,
            "retry.backoff.ms": 20,
            "retry.backoff.max.ms": 100,
            "statistics.interval.ms": 0,
            "log_level": 0,
        }
        consumer = Consumer(self._config.librdkafka(**settings))
        try:
            asked = [ConfluentPartition(*place) for place in partitions]
            answer = consumer.committed(asked, timeout=min(_ATTEMPT_S, timeout_s(deadline)))
        finally:
            consumer.close()
        for place in answer:
            if place.error is not None:
                raise KafkaException(place.error)
        return {TopicPartition(p.topic, p.partition): p.offset for p in answer if p.offset >= 0}

    def _not_told(
        self, group_id: str, partitions: Sequence[TopicPartition]
    ) -> BrokerUnreachableError:
        """Tell an open transaction from no answer. Read_uncommitted returns unstable offsets."""
        try:
            why = Deadline.after_ms(_WHY_MS)
            self._committed(group_id, partitions, IsolationLevel.READ_UNCOMMITTED, why)
        except KafkaException as exception:
            return BrokerUnreachableError(
                "{servers} did not return the offsets of group '{group_id}' within the deadline:"
                " {reason}",
                servers=self._config.bootstrap_servers,
                group_id=group_id,
                reason=self._config.redact(exception.args[0].str()),
            )
        return BrokerUnreachableError(
            "group '{group_id}' has offsets in a transaction that is still open. Start the query"
            " again after the transaction has ended",
            group_id=group_id,
        )

    def _ask(self, group_id: str, ask: Callable[[Admin], T], deadline: Deadline) -> T | None:
        """The answer, or None if the group does not exist. Transient failures are repeated."""
        while True:
            admin, self._admin = self._admin or Admin(self._config), None
            try:
                answer = ask(admin)
            except KafkaException as exception:
                code = exception.args[0].code()
                if code == KafkaError.GROUP_ID_NOT_FOUND:
                    self._admin = admin
                    return None
                if code not in TRANSIENT or deadline.passed:
                    raise _to_error(admin, exception, group_id) from None
                # A client may go on asking the old coordinator. A new client finds the new one.
                time.sleep(_LOOK_EVERY_S)
            else:
                self._admin = admin
                return answer


def _to_error(admin: Admin, exception: KafkaException, group_id: str) -> SparkEosError:
    group = f"group '{group_id}'"
    rights = f"READ and DESCRIBE on {group}"
    return admin.to_error(exception, f"use {group}", rights, group_id=group_id)
