"""Driver. The consumer group whose offsets move with a query's batches.

Nothing in Kafka keeps a plain consumer and a query from moving the same group. So the group is
looked at after the offsets were sent into the transaction and before the batch is decided. A
consumer that joined before is seen then, and nothing is decided. One that joins later asks for its
offsets while the transaction is pending: the broker lets it wait until the transaction has ended,
and it goes on exactly behind the batch.
"""

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
# A question that got no answer is asked by a new client: the coordinator may have moved.
_ATTEMPT_S: Final = 5.0
_WHY_MS: Final = 1_000
# What a broker answers to a commit of somebody who is no member, while the group has members.
_HAS_MEMBERS: Final = frozenset(
    {
        KafkaError.UNKNOWN_MEMBER_ID,
        KafkaError.ILLEGAL_GENERATION,
        KafkaError.REBALANCE_IN_PROGRESS,
        KafkaError.NON_EMPTY_GROUP,
    }
)


class ConsumerGroups:
    """The groups of one cluster, asked and moved from outside: this client never joins one."""

    def __init__(self, config: ClientConfig) -> None:
        self._config = config
        self._admin: Admin | None = None
        self._consumers: dict[str, Any] = {}  # by group; each for its metadata only

    def metadata(self, group_id: str) -> object:
        """What names the group in a transaction, of a consumer that never joins it."""
        if group_id not in self._consumers:
            settings = self._config.librdkafka(
                **{"group.id": group_id, "enable.auto.commit": False, "log_level": 0}
            )
            self._consumers[group_id] = Consumer(settings)
        return self._consumers[group_id].consumer_group_metadata()

    def check_not_in_use(self, group_id: str, deadline: Deadline) -> None:
        """Raise where a consumer is a member of the group."""

        def ask(admin: Admin) -> list[Any]:
            futures = admin.client.describe_consumer_groups(
                [group_id], request_timeout=timeout_s(deadline)
            )
            answer = admin.result(futures[group_id], f"describe group '{group_id}'", deadline)
            members: list[Any] = answer.members
            return members

        members = self._ask(group_id, ask, deadline) or []
        if members:
            raise GroupInUseError(
                f"consumer '{members[0].client_id}' at {members[0].host} is a member of group"
                f" '{group_id}', whose offsets this query moves: each would read what the other has"
                " read. Nothing was decided. Stop one of the two; the other goes on where it"
                " stopped"
            )

    def committed_offsets(
        self, group_id: str, partitions: Sequence[TopicPartition], deadline: Deadline
    ) -> Offsets:
        """The offsets that the group has committed; absent for a partition where it has none.

        Offsets in a transaction that is not over are neither: they are waited for.
        """
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
        """Commit offsets of a group that has no members; returns those that the broker took.

        It takes none while the group has a member, and none of a topic that does not exist.
        """
        left_out = {*_HAS_MEMBERS, KafkaError.UNKNOWN_TOPIC_OR_PART}

        def ask(admin: Admin) -> Offsets:
            places = [ConfluentPartition(*place, offset) for place, offset in offsets.items()]
            futures = admin.client.alter_consumer_group_offsets(
                [ConsumerGroupTopicPartitions(group_id, places)],
                request_timeout=timeout_s(deadline),
            )
            asked = f"take offsets of group '{group_id}'"
            answer = admin.result(futures[group_id], asked, deadline)
            for place in answer.topic_partitions:
                if place.error is not None and place.error.code() not in left_out:
                    raise KafkaException(place.error)
            taken = [place for place in answer.topic_partitions if place.error is None]
            return {TopicPartition(place.topic, place.partition): place.offset for place in taken}

        return self._ask(group_id, ask, deadline) or {}

    def offsets_fate(self, group_id: str, wanted: str, deadline: Deadline) -> Fate:
        """What became of a transaction that moved the group to `wanted`, a map as JSON.

        Only this query moves the group, batch by batch: a group that is not there yet was not
        moved. Where its offsets expired that is said too, and to send them again does no harm.
        """
        logged = from_map(json.loads(wanted))
        now = self.committed_offsets(group_id, list(logged), deadline)
        moved = all(now.get(partition, -1) >= offset for partition, offset in logged.items())
        return Fate.COMMITTED if moved else Fate.ABORTED

    def close(self) -> None:
        """Close the consumers. An admin client is closed when nobody holds it."""
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
        """Ask once. At read_committed, offsets in an open transaction are no answer.

        By a consumer of its own, not by an admin client: where the coordinator has moved, the admin
        client's ListConsumerGroupOffsets ends the whole process (librdkafka #5040).
        """
        consumer = Consumer(
            self._config.librdkafka(
                **{
                    "group.id": group_id,
                    "isolation.level": isolation_level.value,
                    "enable.auto.commit": False,
                    "reconnect.backoff.ms": 10,
                    "retry.backoff.ms": 20,
                    "retry.backoff.max.ms": 100,
                    "statistics.interval.ms": 0,
                    "log_level": 0,
                }
            )
        )
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
        """Tell an open transaction, whose offsets are known and not stable, from no answer."""
        try:
            why = Deadline.after_ms(_WHY_MS)
            self._committed(group_id, partitions, IsolationLevel.READ_UNCOMMITTED, why)
        except KafkaException as exception:
            reason = self._config.redact(exception.args[0].str())
            return BrokerUnreachableError(
                f"{self._config.bootstrap_servers} did not tell the offsets of group '{group_id}'"
                f" within the deadline: {reason}"
            )
        return BrokerUnreachableError(
            f"group '{group_id}' has offsets in a transaction that is still open: start the query"
            " again when it has ended"
        )

    def _ask(self, group_id: str, ask: Callable[[Admin], T], deadline: Deadline) -> T | None:
        """The answer; None where there is no such group. What may pass is asked again."""
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
                # It may go on asking a coordinator that was: a new one asks who it is.
                time.sleep(_LOOK_EVERY_S)
            else:
                self._admin = admin
                return answer


def _to_error(admin: Admin, exception: KafkaException, group_id: str) -> SparkEosError:
    group = f"group '{group_id}'"
    return admin.to_error(exception, f"use {group}", f"READ and DESCRIBE on {group}")
