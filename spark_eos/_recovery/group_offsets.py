"""Planner worker, at the first batch of a run. Put back the offsets of a group that have expired.

Brokers delete the offsets of a group without members that nothing moved for
offsets.retention.minutes, and a consumer that takes over would start somewhere else. The log still
has the offsets of the last batch.
"""

import json
import logging

from spark_eos._deadline import Deadline
from spark_eos._kafka.admin.group import ConsumerGroups
from spark_eos._protocol.offsets.offset_map import from_map
from spark_eos._protocol.offsets.topic_partition import Offsets
from spark_eos._session import Session

_LOG = logging.getLogger(__name__)


def restore_group_offsets(session: Session, deadline: Deadline) -> None:
    """Put back the offsets of the last complete batch. Call this after recovery: from then on no
    other driver can move the group.
    """
    last = session.log.last_batch(session.query_id) if session.group_id is not None else None
    for record in last.records if last is not None else ():
        if record.group_id is not None and record.group_id == session.group_id:
            put_back(session.cluster.groups, record.group_id, record.source_offsets, deadline)


def put_back(
    groups: ConsumerGroups, group_id: str, source_offsets: str | None, deadline: Deadline
) -> Offsets:
    """Commit logged offsets where the group has none. Return these offsets.

    An offset that the group has is never moved. A group with a member belongs to that consumer.
    """
    logged = from_map(json.loads(source_offsets)) if source_offsets else {}
    there = groups.committed_offsets(group_id, sorted(logged), deadline) if logged else {}
    missing = {place: offset for place, offset in logged.items() if place not in there}
    if not missing:
        return {}
    restored = groups.put_offsets(group_id, missing, deadline)
    if restored:
        _LOG.warning(
            "group '%s' had lost committed offsets of the query's last batch. They were put back"
            " from the transaction log: %s",
            group_id,
            ", ".join(f"{p} at {offset}" for p, offset in sorted(restored.items())),
        )
    return restored
