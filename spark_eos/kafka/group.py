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

from spark_eos.errors import BrokerUnreachableError, GroupInUseError, OptionError
from spark_eos.kafka.admin import PASSING, Admin, timeout_s
from spark_eos.kafka.client_config import ClientConfig
from spark_eos.protocol.deadline import Deadline
from spark_eos.protocol.fate import Fate
from spark_eos.protocol.offset_limit import Offsets
from spark_eos.protocol.offset_map import from_map

T = TypeVar("T")

_NOT_ALLOWED: Final = KafkaError.GROUP_AUTHORIZATION_FAILED
_LOOK_EVERY_S: Final = 0.02

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

    def ask(admin: Admin) -> Offsets:
        asked = ConsumerGroupTopicPartitions(group_id, [ConfluentPartition(*p) for p in partitions])
        futures = admin.client.list_consumer_group_offsets(
            [asked], require_stable=True, request_timeout=timeout_s(deadline)
        )
        answer = admin.result(futures[group_id], f"offsets of group '{group_id}'", deadline)
        for place in answer.topic_partitions:
            if place.error is not None:
                raise KafkaException(place.error)
        return {(p.topic, p.partition): p.offset for p in answer.topic_partitions if p.offset >= 0}

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
            if code == KafkaError.UNSTABLE_OFFSET_COMMIT:
                _admins[config] = admin
            # Else it may go on asking a coordinator that was: a new one asks who it is.
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
    if error.code() == KafkaError.UNSTABLE_OFFSET_COMMIT:
        return BrokerUnreachableError(
            f"group '{group_id}' has offsets in a transaction that is still open: start the query"
            " again when it has ended"
        )
    return admin.refusal(exception, f"group '{group_id}'")
