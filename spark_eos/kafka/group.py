"""Driver. The consumer group whose offsets move with a query's batches.

Nothing in Kafka keeps a plain consumer and a query from moving the same group. So the group is
looked at after the offsets were sent into the transaction and before the batch is decided. A
consumer that joined before is seen then, and nothing is decided. One that joins later asks for its
offsets while the transaction is pending: the broker lets it wait until the transaction has ended,
and it goes on exactly behind the batch.
"""

import json
import time
from collections.abc import Callable
from typing import Any, Final, TypeVar

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaError, KafkaException
from confluent_kafka import TopicPartition as ConfluentPartition

from spark_eos.deadline import Deadline
from spark_eos.errors import BrokerUnreachableError, GroupInUseError, OptionError
from spark_eos.kafka.admin import PASSING, Admin, timeout_s
from spark_eos.kafka.client_config import ClientConfig
from spark_eos.protocol.fate import Fate
from spark_eos.protocol.offset_limit import Offsets
from spark_eos.protocol.offset_map import from_map

T = TypeVar("T")

_NOT_ALLOWED: Final = KafkaError.GROUP_AUTHORIZATION_FAILED
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

_consumers: dict[tuple[ClientConfig, str], Any] = {}
_admins: dict[ClientConfig, Admin] = {}


def group_metadata(config: ClientConfig, group_id: str) -> object:
    """What names the group in a transaction, of a consumer that never joins it."""
    key = (config, group_id)
    if key not in _consumers:
        settings = config.librdkafka(**{"group.id": group_id, "enable.auto.commit": False})
        _consumers[key] = Consumer(settings)
    return _consumers[key].consumer_group_metadata()


def check_not_in_use(config: ClientConfig, group_id: str, deadline: Deadline) -> None:
    """Raise where a consumer is a member of the group."""

    def ask(admin: Admin) -> list[Any]:
        futures = admin.client.describe_consumer_groups(
            [group_id], request_timeout=timeout_s(deadline)
        )
        answer = admin.result(futures[group_id], f"group '{group_id}'", deadline)
        members: list[Any] = answer.members
        return members

    members = _ask(config, group_id, ask, deadline) or []
    if members:
        raise GroupInUseError(
            f"consumer '{members[0].client_id}' at {members[0].host} is a member of group"
            f" '{group_id}', whose offsets this query moves: each would read what the other has"
            " read. Nothing was decided. Stop one of the two; the other goes on where it stopped"
        )


def committed_offsets(
    config: ClientConfig, group_id: str, partitions: list[tuple[str, int]], deadline: Deadline
) -> Offsets:
    """The offsets that the group has committed; absent for a partition where it has none.

    Offsets in a transaction that is not over are neither: they are waited for.
    """
    while True:
        try:
            return _committed(config, group_id, partitions, "read_committed", deadline)
        except KafkaException as exception:
            code = exception.args[0].code()
            if code not in PASSING and code >= 0:
                raise _refusal(_admins.get(config) or Admin(config), exception, group_id) from None
        if deadline.passed:
            raise _not_told(config, group_id, partitions)
        time.sleep(_LOOK_EVERY_S)


def _committed(
    config: ClientConfig,
    group_id: str,
    partitions: list[tuple[str, int]],
    isolation_level: str,
    deadline: Deadline,
) -> Offsets:
    """Ask once. At read_committed, offsets in an open transaction are no answer.

    By a consumer that never joins the group, not by an admin client: where the coordinator has
    moved, the admin client's ListConsumerGroupOffsets ends the whole process (librdkafka #5040).
    """
    consumer = Consumer(
        config.librdkafka(
            **{
                "group.id": group_id,
                "isolation.level": isolation_level,
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
    return {(p.topic, p.partition): p.offset for p in answer if p.offset >= 0}


def _not_told(
    config: ClientConfig, group_id: str, partitions: list[tuple[str, int]]
) -> BrokerUnreachableError:
    """Tell an open transaction, whose offsets are known and not stable, from no answer at all."""
    try:
        _committed(config, group_id, partitions, "read_uncommitted", Deadline.after_ms(_WHY_MS))
    except KafkaException as exception:
        reason = config.redact(exception.args[0].str())
        return BrokerUnreachableError(
            f"{config.bootstrap_servers} did not tell the offsets of group '{group_id}' within the"
            f" deadline: {reason}"
        )
    return BrokerUnreachableError(
        f"group '{group_id}' has offsets in a transaction that is still open: start the query"
        " again when it has ended"
    )


def put_offsets(
    config: ClientConfig, group_id: str, offsets: Offsets, deadline: Deadline
) -> Offsets:
    """Commit offsets of a group that has no members; returns those that the broker took.

    It takes none while the group has a member, and none of a topic that does not exist.
    """
    left_out = {*_HAS_MEMBERS, KafkaError.UNKNOWN_TOPIC_OR_PART}

    def ask(admin: Admin) -> Offsets:
        places = [ConfluentPartition(*place, offset) for place, offset in offsets.items()]
        futures = admin.client.alter_consumer_group_offsets(
            [ConsumerGroupTopicPartitions(group_id, places)], request_timeout=timeout_s(deadline)
        )
        answer = admin.result(futures[group_id], f"group '{group_id}' to take offsets", deadline)
        for place in answer.topic_partitions:
            if place.error is not None and place.error.code() not in left_out:
                raise KafkaException(place.error)
        taken = [place for place in answer.topic_partitions if place.error is None]
        return {(place.topic, place.partition): place.offset for place in taken}

    return _ask(config, group_id, ask, deadline) or {}


def offsets_fate(config: ClientConfig, group_id: str, wanted: str, deadline: Deadline) -> Fate:
    """What became of a transaction that moved the group to `wanted`, a map as JSON.

    Only this query moves the group, batch by batch: a group that is not there yet was not moved.
    Where its offsets expired that is said too, and to send them again does no harm.
    """
    logged = from_map(json.loads(wanted))
    now = committed_offsets(config, group_id, list(logged), deadline)
    moved = all(now.get(partition, -1) >= offset for partition, offset in logged.items())
    return Fate.COMMITTED if moved else Fate.ABORTED


def _ask(
    config: ClientConfig, group_id: str, ask: Callable[[Admin], T], deadline: Deadline
) -> T | None:
    """The answer; None where there is no such group. What may pass is asked again."""
    while True:
        admin = _admins.pop(config, None) or Admin(config)
        try:
            answer = ask(admin)
        except KafkaException as exception:
            code = exception.args[0].code()
            if code == KafkaError.GROUP_ID_NOT_FOUND:
                _admins[config] = admin
                return None
            if code not in PASSING or deadline.passed:
                raise _refusal(admin, exception, group_id) from None
            # It may go on asking a coordinator that was: a new one asks who it is.
            time.sleep(_LOOK_EVERY_S)
        else:
            _admins[config] = admin
            return answer


def _refusal(admin: Admin, exception: KafkaException, group_id: str) -> Exception:
    error = exception.args[0]
    if error.code() == _NOT_ALLOWED:
        return OptionError(
            f"the cluster does not show group '{group_id}': grant this user READ and DESCRIBE on it"
        )
    return admin.refusal(exception, f"group '{group_id}'")
