"""Commit worker. Step 4: the source offsets of the batch, in a transaction of the driver's own.

It is prepared like a task's and decided with them: rows and offsets become visible by one decision.
The offsets are where the batch ends, as Spark wrote them to the checkpoint before the batch ran.
"""

import json
from dataclasses import replace

from spark_eos.deadline import OUTDATED_S, Backoff, Deadline
from spark_eos.errors import OptionError
from spark_eos.failpoints import failpoint
from spark_eos.kafka.cluster import end_offsets, partition_counts
from spark_eos.kafka.group import check_not_in_use, group_metadata
from spark_eos.kafka.transactional_producer import TransactionalProducer
from spark_eos.options import SinkOptions
from spark_eos.protocol.offset_limit import Offsets
from spark_eos.protocol.offset_map import to_map
from spark_eos.protocol.transaction import PreparedTransaction
from spark_eos.protocol.transactional_id import TransactionalId
from spark_eos.recovery.checkpoint import Checkpoint

# The topics that this process has seen on the sink's cluster.
_seen: dict[tuple[SinkOptions, str], bool] = {}


def prepare_offsets(
    options: SinkOptions, query_id: str, batch_id: int, deadline: Deadline
) -> PreparedTransaction | None:
    """The open transaction that moves the group; None where no group is named."""
    if options.group_id is None:
        return None
    offsets = Checkpoint(options.checkpoint_location).kafka_offsets(batch_id)
    _check_topics(options, offsets, deadline)
    transactional_id = TransactionalId(
        prefix=options.transactional_id_prefix, query_id=query_id, partition=None
    )
    producer = TransactionalProducer(
        options.client,
        str(transactional_id),
        timeout_ms=options.transaction_timeout_ms,
        send_timeout_ms=options.api_timeout_ms,
    )
    producer.partition_count(next(iter(offsets))[0], deadline)
    producer.begin(deadline)
    try:
        metadata = group_metadata(options.client, options.group_id)
        producer.send_offsets(offsets, metadata, deadline)
        check_not_in_use(options.client, options.group_id, deadline)
        prepared = producer.prepare(deadline)
    except BaseException:
        producer.abort(deadline)
        raise
    failpoint("offsets-prepared")
    return replace(prepared, group_id=options.group_id, source_offsets=json.dumps(to_map(offsets)))


def _check_ends(options: SinkOptions, offsets: Offsets, deadline: Deadline) -> None:
    """A topic of the same name on another cluster, a mirror for example, is not the source's.

    A leader that has just been elected may not know for a moment how far its log is committed.
    """
    backoff = Backoff(deadline.at_most_s(OUTDATED_S))
    while True:
        ends = end_offsets(options.client, offsets, deadline)
        behind = [p for p, offset in offsets.items() if ends.get(p, offset) < offset]
        if not behind:
            return
        if not backoff.wait():
            break
    topic, partition = behind[0]
    raise OptionError(
        f"group.id '{options.group_id}' can be moved only on the cluster that is written to, and"
        f" there {topic}-{partition} ends at {ends[behind[0]]}, before the batch's end at"
        f" {offsets[behind[0]]}: the source reads another cluster. Remove group.id"
    )


def _check_topics(options: SinkOptions, offsets: Offsets, deadline: Deadline) -> None:
    if not offsets:
        raise OptionError(
            f"group.id '{options.group_id}' is set, and no source of the query reads from Kafka:"
            " there are no offsets to commit. Remove group.id"
        )
    new = sorted({topic for topic, _ in offsets if (options, topic) not in _seen})
    if not new:
        return
    try:
        partition_counts(options.client, new, deadline)
    except OptionError as error:
        raise OptionError(
            f"group.id '{options.group_id}' can be moved only on the cluster that is written to,"
            f" and the source's topic is not there: {error}"
        ) from None
    _check_ends(options, {p: o for p, o in offsets.items() if p[0] in new}, deadline)
    _seen.update({(options, topic): True for topic in new})
