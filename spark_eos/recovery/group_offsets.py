"""Planner worker, at the first batch of a run. Put back the offsets of a group that have expired.

Brokers delete the offsets of a group that has no members and that nothing moved for
offsets.retention.minutes. A query that reads nothing for that long loses the place of its group,
though nothing was read since: whoever takes the group over would start somewhere else. The log
still has the offsets of the last batch.
"""

import json
import logging

from spark_eos.deadline import Deadline
from spark_eos.kafka.client_config import ClientConfig
from spark_eos.kafka.group import committed_offsets, put_offsets
from spark_eos.protocol.offset_limit import Offsets
from spark_eos.protocol.offset_map import from_map

_LOG = logging.getLogger(__name__)


def restore_group_offsets(
    config: ClientConfig, group_id: str, source_offsets: str, deadline: Deadline
) -> Offsets:
    """Commit logged offsets where the group has none; returns what was put back.

    `group_id` and `source_offsets` are those of the query's last complete batch in the log. An
    offset that is there is never moved, wherever it is. A group with a member is left alone: it
    belongs to that consumer. Call it after recovery, when no other driver can move the group.
    """
    logged = from_map(json.loads(source_offsets))
    there = committed_offsets(config, group_id, sorted(logged), deadline)
    missing = {place: offset for place, offset in logged.items() if place not in there}
    if not missing:
        return {}
    restored = put_offsets(config, group_id, missing, deadline)
    if restored:
        _LOG.warning(
            "group '%s' had no committed offsets where the query's last batch ended. Put back from"
            " the transaction log: %s",
            group_id,
            ", ".join(f"{t}-{p} at {offset}" for (t, p), offset in sorted(restored.items())),
        )
    return restored
