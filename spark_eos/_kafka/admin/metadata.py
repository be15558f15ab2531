"""Every process. Topics, ends of partitions, and settings of the cluster."""

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

from spark_eos._deadline import NEW_TOPIC_S, Backoff, Deadline
from spark_eos._kafka.admin.client import Admin, ask_any_broker, timeout_s
from spark_eos._kafka.config.client_config import ClientConfig
from spark_eos._kafka.topic_id import topic_id_text
from spark_eos._protocol.offsets.topic_partition import Offsets, TopicPartition
from spark_eos.errors import OptionError


class ClusterMetadata:
    """Each question has a new client: an older one may go on asking a broker that hangs."""

    def __init__(self, config: ClientConfig) -> None:
        self._config = config

    def partition_counts(self, topics: Sequence[str], deadline: Deadline) -> dict[str, int]:
        """The number of partitions of each topic. Raises for a topic that does not exist."""
        backoff = Backoff(deadline.at_most_s(NEW_TOPIC_S))
        while True:
            counts = self.partition_counts_if_any(topics, deadline)
            found = {topic: count for topic, count in counts.items() if count is not None}
            if len(found) == len(counts):
                return found
            if not backoff.wait():
                raise OptionError(
                    "topic '{topic}' does not exist on {servers}. Create it first: no topic is"
                    " created automatically",
                    topic=min(counts.keys() - found.keys()),
                    servers=self._config.bootstrap_servers,
                )

    def partition_counts_if_any(
        self, topics: Sequence[str], deadline: Deadline
    ) -> dict[str, int | None]:
        """The number of partitions of each topic, or None if it does not exist."""
        described = self._describe_topics(topics, deadline)
        return {t: None if d is None else len(d.partitions) for t, d in described.items()}

    def topic_ids(self, topics: Sequence[str], deadline: Deadline) -> dict[str, str | None]:
        """The id of each topic, or None if the topic does not exist or has no id."""
        described = self._describe_topics(topics, deadline)
        return {t: None if d is None else topic_id_text(d.topic_id) for t, d in described.items()}

    def last_stable_offsets(
        self, partitions: Iterable[TopicPartition], deadline: Deadline
    ) -> Offsets:
        """The last stable offset of each partition that was answered for."""
        return self._latest(partitions, IsolationLevel.READ_COMMITTED, deadline)

    def end_offsets(self, partitions: Iterable[TopicPartition], deadline: Deadline) -> Offsets:
        """The end offset of each partition that was answered for, at read_uncommitted."""
        return self._latest(partitions, IsolationLevel.READ_UNCOMMITTED, deadline)

    def cluster_id(self, deadline: Deadline) -> str:
        """The id of the cluster."""
        return str(ask_any_broker(self._config, _describe_cluster, deadline).cluster_id)

    def max_transaction_timeout_ms(self, deadline: Deadline) -> int | None:
        """The brokers' transaction.max.timeout.ms. None: this user may not describe it."""

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
            asked = f"return offsets of topic '{place.topic}'"
            with suppress(KafkaException):  # the partition has no leader now, or was deleted
                offset = admin.result(future, asked, deadline).offset
                if offset >= 0:  # for a dead leader librdkafka returns -1001 and no error
                    found[TopicPartition(place.topic, place.partition)] = offset
        return found


def describe_topics(
    admin: Admin, topics: Iterable[str], deadline: Deadline
) -> dict[str, TopicDescription | None]:
    """The description of each topic, or None if it does not exist. Creates no topic."""
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
                rights = f"DESCRIBE on {what}"
                raise admin.to_error(exception, f"describe {what}", rights, topic=topic) from None
            found[topic] = None
    return found


def _describe_cluster(admin: Admin, deadline: Deadline) -> DescribeClusterResult:
    described = admin.client.describe_cluster(request_timeout=timeout_s(deadline))
    try:
        result: DescribeClusterResult = admin.result(described, "describe the cluster", deadline)
    except KafkaException as exception:
        raise admin.to_error(exception, "describe the cluster", "DESCRIBE on the cluster") from None
    return result
