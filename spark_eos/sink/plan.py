"""Planner worker. Before a batch: check the job against the cluster, then recover (step 1).

The checks of the cluster and the sweep for orphans are done at the first batch that this process
plans for a query. That may be again in the middle of a run, when Spark has let an idle planner die;
both are harmless then.
"""

from spark_eos.errors import OptionError
from spark_eos.failpoints import failpoint
from spark_eos.kafka.client_config import check_librdkafka
from spark_eos.kafka.cluster import max_transaction_timeout_ms, partition_counts
from spark_eos.options import SinkOptions
from spark_eos.protocol.deadline import Deadline
from spark_eos.protocol.replay import QueryTail
from spark_eos.recovery.checkpoint import Checkpoint
from spark_eos.recovery.orphans import abort_orphans
from spark_eos.recovery.recover import recover
from spark_eos.sink.connections import coordinator_client, transaction_log

_checked: set[tuple[SinkOptions, str]] = set()


def plan_batch(options: SinkOptions) -> QueryTail:
    """What the tasks must know of the log's tail, when nothing of an earlier run is left over."""
    deadline = Deadline.after_ms(options.api_timeout_ms)
    checkpoint = Checkpoint(options.checkpoint_location)
    query_id = checkpoint.query_id()
    first = (options, query_id) not in _checked
    if first:
        _check_cluster(options, deadline)
    coordinator = coordinator_client(options.client)
    tail = recover(
        query_id,
        log=transaction_log(options.transaction_log, query_id),
        checkpoint=checkpoint,
        config=options.client,
        coordinator=coordinator,
        deadline=deadline,
    )
    if first:
        abort_orphans(
            query_id,
            coordinator=coordinator,
            timeout_ms=options.transaction_timeout_ms,
            deadline=deadline,
        )
        _checked.add((options, query_id))
    failpoint("planned")
    return tail


def _check_cluster(options: SinkOptions, deadline: Deadline) -> None:
    check_librdkafka(options.client)
    if options.topic is not None:
        partition_counts(options.client, [options.topic], deadline)
    maximum_ms = max_transaction_timeout_ms(options.client, deadline)
    if maximum_ms is not None and options.transaction_timeout_ms > maximum_ms:
        raise OptionError(
            f"kafka.transaction.timeout.ms {options.transaction_timeout_ms} is above the broker's"
            f" transaction.max.timeout.ms {maximum_ms}. Lower the option, or raise the broker's"
            " setting"
        )
