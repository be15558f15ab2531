"""Driver. What a job must know of its cluster before it writes: topics, partitions, limits."""

import random
from collections.abc import Iterable, Sequence
from contextlib import suppress

from confluent_kafka import (
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    DescribeClusterResult,
    OffsetSpec,
    ResourceType,
    TopicDescription,
)

from spark_eos._deadline import Deadline
from spark_eos._kafka.admin.client import NOT_AUTHORIZED, Admin, ask_any_broker, timeout_s
from spark_eos._kafka.config.client_config import ClientConfig
from spark_eos._kafka.coordinator.topic_id import topic_id_text
from spark_eos.errors import OptionError


def partition_counts(
    config: ClientConfig, topics: Sequence[str], deadline: Deadline
) -> dict[str, int]:
    """The number of partitions of each topic; raise for one that does not exist."""
    counts: dict[str, int] = {}
    for topic, count in partition_counts_if_any(config, topics, deadline).items():
        if count is None:
            raise OptionError(
                f"topic '{topic}' does not exist on {config.bootstrap_servers}: create it first, "
                "it is never created on the way"
            )
        counts[topic] = count
    return counts


def partition_counts_if_any(
    config: ClientConfig, topics: Sequence[str], deadline: Deadline
) -> dict[str, int | None]:
    """The number of partitions of each topic; None for one that does not exist."""
    described = _describe_topics(config, topics, deadline)
    return {t: None if d is None else len(d.partitions) for t, d in described.items()}


def topic_ids(
    config: ClientConfig, topics: Sequence[str], deadline: Deadline
) -> dict[str, str | None]:
    """The id of each topic; None for one that does not exist, or where the cluster gives none."""
    described = _describe_topics(config, topics, deadline)
    return {t: None if d is None else topic_id_text(d.topic_id) for t, d in described.items()}


def describe_topics(
    admin: Admin, topics: Iterable[str], deadline: Deadline
) -> dict[str, TopicDescription | None]:
    """What the cluster says of each topic; None for one that does not exist. Creates none."""
    wanted = list(dict.fromkeys(topics))
    if not wanted:
        return {}
    futures = admin.client.describe_topics(
        TopicCollection(wanted), request_timeout=timeout_s(deadline)
    )
    found: dict[str, TopicDescription | None] = {}
    for topic, future in futures.items():
        try:
            found[topic] = admin.result(future, f"partitions of '{topic}'", deadline)
        except KafkaException as exception:
            code = exception.args[0].code()
            if code in NOT_AUTHORIZED:
                raise OptionError(
                    f"the cluster does not show topic '{topic}': grant this user DESCRIBE on it"
                ) from None
            if code != KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise admin.refusal(exception, f"topic '{topic}'") from None
            found[topic] = None
    return found


def _describe_topics(
    config: ClientConfig, topics: Sequence[str], deadline: Deadline
) -> dict[str, TopicDescription | None]:
    return ask_any_broker(
        config, lambda admin, attempt: describe_topics(admin, topics, attempt), deadline
    )


def last_stable_offsets(
    config: ClientConfig, partitions: Iterable[tuple[str, int]], deadline: Deadline
) -> dict[tuple[str, int], int]:
    """Up to where read_committed readers can get; absent for a partition without an answer."""
    return _latest(config, partitions, IsolationLevel.READ_COMMITTED, deadline)


def end_offsets(
    config: ClientConfig, partitions: Iterable[tuple[str, int]], deadline: Deadline
) -> dict[tuple[str, int], int]:
    """Behind the last record, committed or not; absent for a partition without an answer."""
    return _latest(config, partitions, IsolationLevel.READ_UNCOMMITTED, deadline)


def _latest(
    config: ClientConfig,
    partitions: Iterable[tuple[str, int]],
    level: IsolationLevel,
    deadline: Deadline,
) -> dict[tuple[str, int], int]:
    admin = Admin(config)
    latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]
    wanted = {TopicPartition(*partition): latest for partition in partitions}
    futures = admin.client.list_offsets(
        wanted,
        isolation_level=level,
        request_timeout=timeout_s(deadline),
    )
    found: dict[tuple[str, int], int] = {}
    for partition, future in futures.items():
        with suppress(KafkaException):  # it has no leader just now, or was deleted
            told = admin.result(future, f"offsets of '{partition.topic}'", deadline).offset
            if told >= 0:  # librdkafka has -1001 for a leader that died, and no error
                found[partition.topic, partition.partition] = told
    return found


def cluster_id(config: ClientConfig, deadline: Deadline) -> str:
    """The name that the cluster gave to itself."""
    described = ask_any_broker(config, _describe_cluster, deadline)
    return str(described.cluster_id)


def max_transaction_timeout_ms(config: ClientConfig, deadline: Deadline) -> int | None:
    """The broker's transaction.max.timeout.ms; None where this user may not see it."""

    def ask(admin: Admin, attempt: Deadline) -> int | None:
        node = random.choice(_describe_cluster(admin, attempt).nodes)  # noqa: S311, any of them
        name = "transaction.max.timeout.ms"
        return admin.setting(ResourceType.BROKER, str(node.id), name, attempt)

    return ask_any_broker(config, ask, deadline)


def _describe_cluster(admin: Admin, deadline: Deadline) -> DescribeClusterResult:
    described = admin.client.describe_cluster(request_timeout=timeout_s(deadline))
    try:
        result: DescribeClusterResult = admin.result(described, "DescribeCluster", deadline)
    except KafkaException as exception:
        raise admin.refusal(exception, "DescribeCluster") from None
    return result
