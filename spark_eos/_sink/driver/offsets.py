"""Commit worker. Step 4: the source offsets of the batch, in a transaction of the driver's own.

It is prepared like a task's and decided with them: rows and offsets become visible by one decision.
The offsets are where the batch ends, as Spark wrote them to the checkpoint before the batch ran.
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
    """The open transaction that moves the group to where the batch ends."""
    offsets = session.checkpoint.kafka_offsets(batch_id)
    _check_topics(session, group_id, offsets, deadline)
    options, groups = session.options, session.cluster.groups
    producer = session.cluster.producer(
        session.transactional_id(None),
        batch_id=batch_id,
        timeout_ms=options.transaction_timeout_ms,
        send_timeout_ms=options.api_timeout_ms,
    )
    producer.partition_count(next(iter(offsets))[0], deadline)  # brings the connection up
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
    if not offsets:
        raise OptionError(
            f"group.id '{group_id}' is set, and no source of the query reads from Kafka: there are"
            " no offsets to commit. Remove group.id"
        )
    checked = session.memory.source_topics
    new = sorted({topic for topic, _ in offsets} - checked)
    if not new:
        return
    try:
        session.cluster.metadata.partition_counts(new, deadline)
    except OptionError as error:
        raise OptionError(
            f"group.id '{group_id}' can be moved only on the cluster that is written to, and the"
            f" source's topic is not there: {error}"
        ) from None
    new_offsets = {place: offset for place, offset in offsets.items() if place[0] in new}
    _check_ends(session, group_id, new_offsets, deadline)
    checked.update(new)


def _check_ends(session: Session, group_id: str, offsets: Offsets, deadline: Deadline) -> None:
    """A topic of the same name on another cluster, a mirror for example, is not the source's.

    A leader that has just been elected may not know for a moment how far its log is committed.
    """
    backoff = Backoff(deadline.at_most_s(OUTDATED_S))
    while True:
        ends = session.cluster.metadata.end_offsets(offsets, deadline)
        behind = [p for p, offset in offsets.items() if ends.get(p, offset) < offset]
        if not behind:
            return
        if not backoff.wait():
            break
    raise OptionError(
        f"group.id '{group_id}' can be moved only on the cluster that is written to, and there"
        f" {behind[0]} ends at {ends[behind[0]]}, before the batch's end at"
        f" {offsets[behind[0]]}: the source reads another cluster. Remove group.id"
    )
