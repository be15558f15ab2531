"""Driver. startingOffsets `group`: where a consumer group stopped."""

import logging
from contextlib import closing
from typing import Final

from spark_eos._deadline import Deadline
from spark_eos._kafka.admin.group import ConsumerGroups
from spark_eos._options import SourceOptions
from spark_eos._protocol.offsets.offset_limit import EARLIEST, Offsets, TopicPartition
from spark_eos.errors import OptionError

_LOG = logging.getLogger(__name__)

_MOST_NAMED: Final = 20


def group_start(options: SourceOptions, partitions: set[TopicPartition]) -> Offsets:
    """The committed offsets of the group; EARLIEST for a partition where it has none.

    A partition that is new has no offset yet. But a group without any offset says nothing: to read
    everything again would be a guess, and what it has read before would come twice.
    """
    if not partitions:  # of a pattern that no topic matches yet
        return {}
    group_id = options.group_id or ""
    deadline = Deadline.after_ms(options.api_timeout_ms)
    with closing(ConsumerGroups(options.client)) as groups:
        committed = groups.committed_offsets(group_id, sorted(partitions), deadline)
    missing = sorted(partitions - committed.keys())
    if missing and not committed:
        raise _no_offsets(group_id, partitions)
    if missing:
        _LOG.warning(
            "group '%s' has no committed offsets for %s%s: these partitions are read from their"
            " earliest offset",
            group_id,
            ", ".join(f"{topic}-{partition}" for topic, partition in missing[:_MOST_NAMED]),
            f" and {len(missing) - _MOST_NAMED} more" if len(missing) > _MOST_NAMED else "",
        )
    return dict.fromkeys(missing, EARLIEST) | committed


def _no_offsets(group_id: str, partitions: set[TopicPartition]) -> OptionError:
    topics = ", ".join(sorted({topic for topic, _ in partitions}))
    return OptionError(
        f"startingOffsets 'group': group '{group_id}' has no committed offsets for {topics}: it"
        " never committed any, or they expired after the brokers' offsets.retention.minutes. Set"
        " startingOffsets to earliest, latest or a JSON map. If a txnkafka query moved the group,"
        " the column source_offsets of its transaction log has the last ones"
    )
