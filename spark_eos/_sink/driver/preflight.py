"""Planner worker. Step 1: check the job against the cluster before a row is written."""

from spark_eos._deadline import Deadline
from spark_eos._kafka.cluster import Cluster
from spark_eos._options import WriteOptions
from spark_eos.errors import OptionError


def check_topic(options: WriteOptions, cluster: Cluster, deadline: Deadline) -> None:
    """Every write: librdkafka accepts the settings, and the topic exists."""
    cluster.check_config()
    if options.topic is not None:
        cluster.metadata.partition_counts([options.topic], deadline)


def check_cluster(options: WriteOptions, cluster: Cluster, deadline: Deadline) -> None:
    """A transactional write: also, the broker accepts the transaction time-out."""
    check_topic(options, cluster, deadline)
    maximum_ms = cluster.metadata.max_transaction_timeout_ms(deadline)
    if maximum_ms is not None and options.transaction_timeout_ms > maximum_ms:
        raise OptionError(
            "{option} {timeout_ms} is above the broker's transaction.max.timeout.ms {maximum_ms}."
            " Lower the option, or raise the broker's setting",
            option="kafka.transaction.timeout.ms",
            timeout_ms=options.transaction_timeout_ms,
            maximum_ms=maximum_ms,
        )
