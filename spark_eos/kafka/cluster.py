"""Driver. What a job must know of its cluster before it writes: topics, partitions, limits."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any, Final

from confluent_kafka import (
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    ConfigResource,
    OffsetSpec,
    ResourceType,
)

from spark_eos.errors import BrokerUnreachableError, OptionError, SparkEosError
from spark_eos.kafka.client_config import ClientConfig
from spark_eos.protocol.deadline import Deadline

_NOT_AUTHORIZED: Final = frozenset(
    {KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED}
)


def partition_counts(
    config: ClientConfig, topics: Sequence[str], deadline: Deadline
) -> dict[str, int]:
    """The number of partitions of each topic; raise for one that does not exist."""
    counts: dict[str, int] = {}
    for topic, count in existing_partitions(config, topics, deadline).items():
        if count is None:
            raise OptionError(
                f"topic '{topic}' does not exist on {config.bootstrap_servers}: create it first, "
                "it is never created on the way"
            )
        counts[topic] = count
    return counts


def existing_partitions(
    config: ClientConfig, topics: Sequence[str], deadline: Deadline
) -> dict[str, int | None]:
    """The number of partitions of each topic; None for one that does not exist."""
    wanted = list(dict.fromkeys(topics))
    if not wanted:
        return {}
    admin = _Admin(config, deadline)
    futures = admin.client.describe_topics(
        TopicCollection(wanted), request_timeout=admin.request_timeout_s()
    )
    found: dict[str, int | None] = {}
    for topic, future in futures.items():
        try:
            found[topic] = len(admin.result(future, f"partitions of '{topic}'").partitions)
        except KafkaException as exception:
            code = exception.args[0].code()
            if code in _NOT_AUTHORIZED:
                raise OptionError(
                    f"the cluster does not show topic '{topic}': grant this user DESCRIBE on it"
                ) from None
            if code != KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise admin.refusal(exception, f"topic '{topic}'") from None
            found[topic] = None
    return found


def last_stable_offsets(
    config: ClientConfig, partitions: Iterable[tuple[str, int]], deadline: Deadline
) -> dict[tuple[str, int], int]:
    """Up to where read_committed readers can get; absent for a partition without an answer."""
    admin = _Admin(config, deadline)
    latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]
    wanted = {TopicPartition(*partition): latest for partition in partitions}
    futures = admin.client.list_offsets(
        wanted,
        isolation_level=IsolationLevel.READ_COMMITTED,
        request_timeout=admin.request_timeout_s(),
    )
    found: dict[tuple[str, int], int] = {}
    for partition, future in futures.items():
        with suppress(KafkaException):  # it has no leader just now, or was deleted
            result = admin.result(future, f"offsets of '{partition.topic}'")
            found[partition.topic, partition.partition] = result.offset
    return found


def max_transaction_timeout_ms(config: ClientConfig, deadline: Deadline) -> int | None:
    """The broker's transaction.max.timeout.ms; None where this user may not see it."""
    admin = _Admin(config, deadline)
    described = admin.client.describe_cluster(request_timeout=admin.request_timeout_s())
    try:
        node = admin.result(described, "DescribeCluster").nodes[0]
    except KafkaException as exception:
        raise admin.refusal(exception, "DescribeCluster") from None
    return admin.setting(ResourceType.BROKER, str(node.id), "transaction.max.timeout.ms")


class _Admin:
    """An admin client for one question, with its deadline and the last failure it told."""

    def __init__(self, config: ClientConfig, deadline: Deadline) -> None:
        self._config = config
        self._deadline = deadline
        self._failure: KafkaError | None = None
        self.client = AdminClient(
            config.librdkafka(
                **{
                    "error_cb": self._remember,
                    "reconnect.backoff.ms": 10,
                    "statistics.interval.ms": 0,
                    "log_level": 0,
                }
            )
        )

    def request_timeout_s(self) -> float:
        return max(0.001, self._deadline.remaining_s)

    def result(self, future: Any, asked: str) -> Any:
        """The future's value. KafkaException is the broker's answer; no answer raises here."""
        try:
            while not future.done() and not self._deadline.passed:
                self.client.poll(0.01)  # delivers the failures of connections
                if self._login_refused():
                    break
            return future.result(0)
        except KafkaException as exception:
            if exception.args[0].code() >= 0:
                raise
        except TimeoutError:
            pass
        raise self._unreachable(asked)

    def setting(self, kind: ResourceType, name: str, key: str) -> int | None:
        resource = ConfigResource(kind, name)
        futures = self.client.describe_configs([resource], request_timeout=self.request_timeout_s())
        try:
            entries = self.result(futures[resource], f"settings of {kind.name.lower()} {name}")
        except KafkaException as exception:
            if exception.args[0].code() in _NOT_AUTHORIZED:
                return None
            raise self.refusal(exception, f"{kind.name.lower()} '{name}'") from None
        return int(entries[key].value) if key in entries else None

    def refusal(self, exception: KafkaException, asked: str) -> SparkEosError:
        text = self._config.redact(exception.args[0].str())
        return OptionError(f"{self._config.bootstrap_servers} refused {asked}: {text}")

    def _unreachable(self, asked: str) -> SparkEosError:
        servers = self._config.bootstrap_servers
        reason = "nothing was heard of it"
        if self._failure is not None:
            reason = self._config.redact(self._failure.str())
        if self._login_refused():
            return OptionError(
                f"{servers} refused the login, see kafka.security.protocol and kafka.sasl.*: "
                f"{reason}"
            )
        return BrokerUnreachableError(
            f"{servers} did not answer within the deadline, asked for {asked}: {reason}"
        )

    def _login_refused(self) -> bool:
        return self._failure is not None and self._failure.code() == KafkaError._AUTHENTICATION

    def _remember(self, error: KafkaError) -> None:
        # "All brokers are down" follows every failure and says less than the failure itself.
        if error.code() != KafkaError._ALL_BROKERS_DOWN or self._failure is None:
            self._failure = error
