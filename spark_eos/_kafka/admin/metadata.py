"""Driver. What the brokers say of the cluster: topics, ends of partitions, limits."""

import random
from collections.abc import Iterable, Sequence
from contextlib import suppress

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicCollection
from confluent_kafka import TopicPartition as ConfluentPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    DescribeClusterResult,
    OffsetSpec,
    ResourceType,
    TopicDescription,
)

from spark_eos._deadline import Deadline
from spark_eos._kafka.admin.client import Admin, ask_any_broker, timeout_s
from spark_eos._kafka.config.client_config import ClientConfig
from spark_eos._kafka.topic_id import topic_id_text
from spark_eos._protocol.offsets.topic_partition import Offsets, TopicPartition
from spark_eos.errors import OptionError


class ClusterMetadata:
    """Asks with a new client each time: one that is kept may go on asking a broker that hangs."""

    def __init__(self, config: ClientConfig) -> None:
        self._config = config

    def partition_counts(self, topics: Sequence[str], deadline: Deadline) -> dict[str, int]:
        """The number of partitions of each topic; raise for one that does not exist."""
        counts: dict[str, int] = {}
        for topic, count in self.partition_counts_if_any(topics, deadline).items():
            if count is None:
                raise OptionError(
                    f"topic '{topic}' does not exist on {self._config.bootstrap_servers}: create it"
                    " first, it is never created on the way"
                )
            counts[topic] = count
        return counts

    def partition_counts_if_any(
        self, topics: Sequence[str], deadline: Deadline
    ) -> dict[str, int | None]:
        """The number of partitions of each topic; None for one that does not exist."""
        described = self._describe_topics(topics, deadline)
        return {t: None if d is None else len(d.partitions) for t, d in described.items()}

    def topic_ids(self, topics: Sequence[str], deadline: Deadline) -> dict[str, str | None]:
        """The id of each topic; None for one that does not exist, or has none."""
        described = self._describe_topics(topics, deadline)
        return {t: None if d is None else topic_id_text(d.topic_id) for t, d in described.items()}

    def last_stable_offsets(
        self, partitions: Iterable[TopicPartition], deadline: Deadline
    ) -> Offsets:
        """Up to where read_committed readers can get; absent for a partition without an answer."""
        return self._latest(partitions, IsolationLevel.READ_COMMITTED, deadline)

    def end_offsets(self, partitions: Iterable[TopicPartition], deadline: Deadline) -> Offsets:
        """Behind the last record, committed or not; absent for a partition without an answer."""
        return self._latest(partitions, IsolationLevel.READ_UNCOMMITTED, deadline)

    def cluster_id(self, deadline: Deadline) -> str:
        """The name that the cluster gave to itself."""
        described = ask_any_broker(self._config, _describe_cluster, deadline)
        return str(described.cluster_id)

    def max_transaction_timeout_ms(self, deadline: Deadline) -> int | None:
        """The broker's transaction.max.timeout.ms; None where this user may not see it."""

        def ask(admin: Admin, attempt: Deadline) -> int | None:
            node = random.choice(_describe_cluster(admin, attempt).nodes)  # noqa: S311, any of them
            name = "transaction.max.timeout.ms"
            return admin.setting(ResourceType.BROKER, str(node.id), name, attempt)

        return ask_any_broker(self._config, ask, deadline)

    def _describe_topics(
        self, topics: Sequence[str], deadline: Deadline
    ) -> dict[str, TopicDescription | None]:
        return ask_any_broker(
            self._config, lambda admin, attempt: describe_topics(admin, topics, attempt), deadline
        )

    def _latest(
        self, partitions: Iterable[TopicPartition], level: IsolationLevel, deadline: Deadline
    ) -> Offsets:
        admin = Admin(self._config)
        latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]
        futures = admin.client.list_offsets(
            {ConfluentPartition(*partition): latest for partition in partitions},
            isolation_level=level,
            request_timeout=timeout_s(deadline),
        )
        found: Offsets = {}
        for place, future in futures.items():
            with suppress(KafkaException):  # it has no leader just now, or was deleted
                told = admin.result(
                    future, f"tell offsets of topic '{place.topic}'", deadline
                ).offset
                if told >= 0:  # librdkafka has -1001 for a leader that died, and no error
                    found[TopicPartition(place.topic, place.partition)] = told
        return found


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
            found[topic] = admin.result(future, f"describe topic '{topic}'", deadline)
        except KafkaException as exception:
            if exception.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                what = f"topic '{topic}'"
                raise admin.to_error(exception, f"describe {what}", f"DESCRIBE on {what}") from None
            found[topic] = None
    return found


def _describe_cluster(admin: Admin, deadline: Deadline) -> DescribeClusterResult:
    described = admin.client.describe_cluster(request_timeout=timeout_s(deadline))
    try:
        result: DescribeClusterResult = admin.result(described, "describe the cluster", deadline)
    except KafkaException as exception:
        raise admin.to_error(exception, "describe the cluster", "DESCRIBE on the cluster") from None
    return result
