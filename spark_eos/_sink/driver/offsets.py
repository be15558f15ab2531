"""Commit worker. Step 4: put the batch's source offsets into a transaction of the driver's own.

This transaction is prepared and decided like those of the tasks, so one decision makes rows and
offsets visible. Spark wrote the batch's end offsets to the checkpoint before the batch ran.
"""

import json
from dataclasses import replace

from spark_eos._deadline import OUTDATED_S, Backoff, Deadline
from spark_eos._failpoints import failpoint
from spark_eos._protocol.offsets.offset_map import to_map
from spark_eos._protocol.offsets.topic_partition import Offsets
from spark_eos._protocol.transactions.transaction import PreparedTransaction
from spark_eos._session import Session
from spark_eos.errors import OptionError


def prepare_offsets(
    session: Session, group_id: str, batch_id: int, deadline: Deadline
) -> PreparedTransaction:
    """The open transaction that moves the group to the end of the batch."""
    offsets = session.checkpoint.kafka_offsets(batch_id)
    _check_topics(session, group_id, offsets, deadline)
    options, groups = session.options, session.cluster.groups
    producer = session.cluster.producer(
        session.transactional_id(None),
        batch_id=batch_id,
        timeout_ms=options.transaction_timeout_ms,
        send_timeout_ms=options.api_timeout_ms,
    )
    producer.partition_count(next(iter(offsets))[0], deadline)  # makes the connection
    producer.begin(deadline)
    try:
        producer.send_offsets(offsets, groups.metadata(group_id), deadline)
        groups.check_not_in_use(group_id, deadline)
        prepared = producer.prepare(deadline)
    except BaseException:
        producer.abort(deadline)
        raise
    failpoint("offsets-prepared")
    return replace(prepared, group_id=group_id, source_offsets=json.dumps(to_map(offsets)))


def _check_topics(session: Session, group_id: str, offsets: Offsets, deadline: Deadline) -> None:
    fields = {"option": "group.id", "group_id": group_id}
    if not offsets:
        raise OptionError(
            "{option} '{group_id}' is set, but no source of the query reads from Kafka. There are"
            " no offsets to commit: remove {option}",
            **fields,
        )
    checked = session.memory.source_topics
    new = sorted({topic for topic, _ in offsets} - checked)
    if not new:
        return
    try:
        session.cluster.metadata.partition_counts(new, deadline)
    except OptionError as error:
        raise OptionError(
            "{option} '{group_id}' can be moved only on the cluster that the sink writes to. The"
            " source's topic is not there: {error}",
            topic=error.topic,
            error=str(error),
            **fields,
        ) from None
    new_offsets = {place: offset for place, offset in offsets.items() if place[0] in new}
    _check_ends(session, group_id, new_offsets, deadline)
    checked.update(new)


def _check_ends(session: Session, group_id: str, offsets: Offsets, deadline: Deadline) -> None:
    """Raise if the topics are on another cluster than the source's, for example on a mirror.

    The ends are asked for again, because a new leader may not know its committed end yet.
    """
    backoff = Backoff(deadline.at_most_s(OUTDATED_S))
    while True:
        ends = session.cluster.metadata.end_offsets(offsets, deadline)
        behind = [p for p, offset in offsets.items() if ends.get(p, offset) < offset]
        if not behind:
            return
        if not backoff.wait():
            raise OptionError(
                "{option} '{group_id}' can be moved only on the cluster that the sink writes to."
                " There {partition} ends at {end}, before the batch's end at {offset}: the source"
                " reads another cluster. Remove {option}",
                option="group.id",
                group_id=group_id,
                partition=behind[0],
                end=ends[behind[0]],
                offset=offsets[behind[0]],
            )
