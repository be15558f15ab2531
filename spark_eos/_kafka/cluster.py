"""Every process. The clients of this process for one Kafka cluster, created on first use."""

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from spark_eos._deadline import Deadline
from spark_eos._kafka.client_log import ClientLog
from spark_eos._kafka.config.client_config import ClientConfig, check_librdkafka
from spark_eos._protocol.offsets.topic_partition import PartitionOffsets
from spark_eos._protocol.transactions.fate import Fate

if TYPE_CHECKING:
    from spark_eos._kafka.admin.group import ConsumerGroups
    from spark_eos._kafka.admin.metadata import ClusterMetadata
    from spark_eos._kafka.consume.consumer import ConsumerPool
    from spark_eos._kafka.coordinator.client import CoordinatorClient
    from spark_eos._kafka.produce.transactional_producer import TransactionalProducer

_CLOSED = ("coordinator", "groups", "consumers")


class Cluster:
    """The clients of one cluster."""

    def __init__(self, config: ClientConfig) -> None:
        self.config = config

    @cached_property
    def metadata(self) -> "ClusterMetadata":
        """What the brokers say of the cluster."""
        from spark_eos._kafka.admin.metadata import ClusterMetadata

        return ClusterMetadata(self.config)

    @cached_property
    def coordinator(self) -> "CoordinatorClient":
        """The client of every transaction coordinator."""
        from spark_eos._kafka.coordinator.client import CoordinatorClient

        return CoordinatorClient(self.config)

    @cached_property
    def groups(self) -> "ConsumerGroups":
        """The client of every group coordinator."""
        from spark_eos._kafka.admin.group import ConsumerGroups

        return ConsumerGroups(self.config)

    @cached_property
    def consumers(self) -> "ConsumerPool":
        """The consumers of tasks, which stay connected between ranges."""
        from spark_eos._kafka.consume.consumer import ConsumerPool

        return ConsumerPool(self.config)

    def producer(
        self, transactional_id: str, *, batch_id: int, timeout_ms: int, send_timeout_ms: int
    ) -> "TransactionalProducer":
        """A new producer for one transaction."""
        from spark_eos._kafka.produce.transactional_producer import TransactionalProducer

        return TransactionalProducer(
            self.config,
            transactional_id,
            timeout_ms=timeout_ms,
            send_timeout_ms=send_timeout_ms,
            log=ClientLog(f"batch {batch_id}, {transactional_id}"),
        )

    def check_config(self) -> None:
        """Raise OptionError for a setting that librdkafka refuses."""
        check_librdkafka(self.config)

    def fates(
        self, transactions: Sequence[tuple[str, Sequence[PartitionOffsets]]], deadline: Deadline
    ) -> dict[str, Fate]:
        """The fate of transactions that their coordinators forgot, as the data shows it."""
        from spark_eos._kafka.consume.visibility import fates

        return fates(self.config, transactions, deadline)

    def close(self) -> None:
        """Close all clients. A later use creates them again."""
        for name in _CLOSED:
            made = self.__dict__.pop(name, None)
            if made is not None:
                made.close()
