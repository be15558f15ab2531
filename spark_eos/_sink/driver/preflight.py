"""Planner worker. Whether the cluster takes what the job wants to do, before a row is written."""

from spark_eos._deadline import Deadline
from spark_eos._kafka.cluster import Cluster
from spark_eos._options import WriteOptions
from spark_eos.errors import OptionError


def check_topic(options: WriteOptions, cluster: Cluster, deadline: Deadline) -> None:
    """What every write needs: a client that librdkafka takes, and the topic."""
    cluster.check_config()
    if options.topic is not None:
        cluster.metadata.partition_counts([options.topic], deadline)


def check_cluster(options: WriteOptions, cluster: Cluster, deadline: Deadline) -> None:
    """And what a transactional one needs besides."""
    check_topic(options, cluster, deadline)
    maximum_ms = cluster.metadata.max_transaction_timeout_ms(deadline)
    if maximum_ms is not None and options.transaction_timeout_ms > maximum_ms:
        raise OptionError(
            f"kafka.transaction.timeout.ms {options.transaction_timeout_ms} is above the broker's"
            f" transaction.max.timeout.ms {maximum_ms}. Lower the option, or raise the broker's"
            " setting"
        )
