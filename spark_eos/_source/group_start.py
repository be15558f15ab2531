"""Driver. startingOffsets `group`: start where a consumer group stopped."""

import logging
from typing import Final

from spark_eos._protocol.offsets.offset_limit import EARLIEST
from spark_eos._protocol.offsets.topic_partition import Offsets, TopicPartition
from spark_eos._session import ReadSession
from spark_eos.errors import OptionError

_LOG = logging.getLogger(__name__)

_MOST_NAMED: Final = 20


def group_start(session: ReadSession, partitions: set[TopicPartition]) -> Offsets:
    """The committed offsets of the group, and EARLIEST for a partition without one (it is new).

    A group without any offset is an error: a read from the earliest offsets may repeat records.
    """
    if not partitions:  # no topic matches the pattern yet
        return {}
    group_id, groups = session.options.group_id or "", session.cluster.groups
    committed = groups.committed_offsets(group_id, sorted(partitions), session.deadline())
    missing = sorted(partitions - committed.keys())
    if missing and not committed:
        raise OptionError(
            "{option} 'group': group '{group_id}' has no committed offsets for {topics}. It never"
            " committed any, or they expired after the brokers' offsets.retention.minutes. Set"
            " {option} to earliest, latest or a JSON map. If a txnkafka query moved the group, the"
            " column source_offsets of its transaction log has the last offsets",
            option="startingOffsets",
            group_id=group_id,
            topics=", ".join(sorted({topic for topic, _ in partitions})),
        )
    if missing:
        _LOG.warning(
            "group '%s' has no committed offsets for %s%s: these partitions start at their earliest"
            " offset",
            group_id,
            ", ".join(map(str, missing[:_MOST_NAMED])),
            f" and {len(missing) - _MOST_NAMED} more" if len(missing) > _MOST_NAMED else "",
        )
    return dict.fromkeys(missing, EARLIEST) | committed
