"""Every process. The options of a read: names, defaults and precedence of Spark's own connector.

Two defaults differ: the isolation level is read_committed, and an option that nobody knows is an
error instead of nothing.
"""

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from spark_eos._kafka.config.client_config import ClientConfig
from spark_eos._options.limits import ending, starting
from spark_eos._options.snapshot import SnapshotOptions, snapshot
from spark_eos._options.subscription import subscription
from spark_eos._options.values import (
    DEFAULT_API_TIMEOUT_MS,
    boolean,
    client_config,
    lower_case,
    milliseconds,
    number,
    refuse_unknown,
    text,
)
from spark_eos._protocol.offsets.isolation import IsolationLevel
from spark_eos._protocol.offsets.offset_limit import EARLIEST, LATEST, GroupOffsets, OffsetLimit
from spark_eos._protocol.offsets.subscription import Subscription
from spark_eos.errors import OptionError

DEFAULT_MAX_TRIGGER_DELAY_MS: Final = 15 * 60 * 1000
DEFAULT_POLL_TIMEOUT_MS: Final = 120_000
DEFAULT_NUM_RETRIES: Final = 3
DEFAULT_RETRY_INTERVAL_MS: Final = 10
DEFAULT_GROUP_ID_PREFIX: Final = "spark-eos-source"

SOURCE_OPTIONS: Final = (
    "assign",
    "subscribe",
    "subscribePattern",
    "startingOffsets",
    "startingTimestamp",
    "startingOffsetsByTimestamp",
    "startingOffsetsByTimestampStrategy",
    "failOnDataLoss",
    "minPartitions",
    "maxRecordsPerPartition",
    "includeHeaders",
    "groupIdPrefix",
    "group.id",
    "isolation.level",
    "transactionLog",
    "queryId",
    "kafkaConsumer.pollTimeoutMs",
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
    "apiTimeoutMs",
)
STREAM_OPTIONS: Final = ("maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay")
BATCH_OPTIONS: Final = (
    "endingOffsets",
    "endingTimestamp",
    "endingOffsetsByTimestamp",
    "startingBatch",
    "endingBatch",
)

_OWN: Final = ("kafka.isolation.level", "kafka.group.id")
_STARTING: Final = "use startingOffsets; where a query stopped is kept in its checkpoint"
_RESERVED: Final = {
    "auto.offset.reset": _STARTING,
    "enable.auto.commit": _STARTING,
    "enable.auto.offset.store": _STARTING,
    "enable.partition.eof": "the source uses it itself",
    "allow.auto.create.topics": "a topic that is read is never created",
}
_DURATION = re.compile(r"\s*([0-9]{1,15})\s*([a-z]*)\s*", re.IGNORECASE)
_UNITS: Final = {
    "": 1,
    "ms": 1,
    "s": 1000,
    "m": 60_000,
    "min": 60_000,
    "h": 3_600_000,
    "d": 86_400_000,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """What a read needs to know."""

    client: ClientConfig
    subscription: Subscription
    isolation_level: IsolationLevel  # the one at which Kafka is asked
    snapshot: SnapshotOptions | None
    starting: OffsetLimit
    ending: OffsetLimit
    fail_on_data_loss: bool
    include_headers: bool
    min_partitions: int | None
    max_records_per_partition: int | None
    max_offsets_per_trigger: int | None
    min_offsets_per_trigger: int | None
    max_trigger_delay_ms: int
    group_id: str | None
    group_id_prefix: str
    poll_timeout_ms: int
    num_retries: int
    retry_interval_ms: int
    api_timeout_ms: int


def stream_options(options: Mapping[str, str]) -> SourceOptions:
    """Check and freeze the options of `readStream`."""
    given = lower_case(options)
    for name in BATCH_OPTIONS:
        if name.lower() in given:
            raise OptionError(f"option {name} is for batch reads: a streaming query has no end")
    refuse_unknown(given, (*SOURCE_OPTIONS, *STREAM_OPTIONS))
    return _source_options(given, default_start=LATEST)


def batch_options(options: Mapping[str, str]) -> SourceOptions:
    """Check and freeze the options of `read`."""
    given = lower_case(options)
    for name in STREAM_OPTIONS:
        if name.lower() in given:
            logging.getLogger(__name__).warning("option %s has no effect on a batch read", name)
    refuse_unknown(given, (*SOURCE_OPTIONS, *BATCH_OPTIONS, *STREAM_OPTIONS))
    return _source_options(given, default_start=EARLIEST)


def includes_headers(options: Mapping[str, str]) -> bool:
    """Whether the frame has a column `headers`."""
    return boolean(lower_case(options), "includeHeaders", default=False)


def _source_options(given: Mapping[str, str], default_start: int) -> SourceOptions:
    level = _isolation_level(given)
    start = starting(given, default_start)
    group_id = _either(given, "group.id", "kafka.group.id")
    if isinstance(start, GroupOffsets) and group_id is None:
        raise OptionError("startingOffsets 'group' needs option group.id: whose offsets?")
    least = number(given, "minOffsetsPerTrigger")
    most = number(given, "maxOffsetsPerTrigger")
    if least is not None and most is not None and least > most:
        raise OptionError(
            f"minOffsetsPerTrigger {least} is larger than maxOffsetsPerTrigger {most}"
        )
    return SourceOptions(
        client=client_config(given, _RESERVED, own=_OWN),
        subscription=subscription(given),
        isolation_level=level.in_kafka,
        snapshot=snapshot(given, level),
        starting=start,
        ending=ending(given, start),
        fail_on_data_loss=boolean(given, "failOnDataLoss", default=True),
        include_headers=boolean(given, "includeHeaders", default=False),
        min_partitions=number(given, "minPartitions", unit="partitions"),
        max_records_per_partition=number(given, "maxRecordsPerPartition"),
        max_offsets_per_trigger=most,
        min_offsets_per_trigger=least,
        max_trigger_delay_ms=_duration(given, "maxTriggerDelay", DEFAULT_MAX_TRIGGER_DELAY_MS),
        group_id=group_id,
        group_id_prefix=text(given, "groupIdPrefix") or DEFAULT_GROUP_ID_PREFIX,
        poll_timeout_ms=milliseconds(
            given, "kafkaConsumer.pollTimeoutMs", DEFAULT_POLL_TIMEOUT_MS, least=1
        ),
        num_retries=number(given, "fetchOffset.numRetries", unit="tries") or DEFAULT_NUM_RETRIES,
        retry_interval_ms=milliseconds(
            given, "fetchOffset.retryIntervalMs", DEFAULT_RETRY_INTERVAL_MS, least=0
        ),
        api_timeout_ms=milliseconds(given, "apiTimeoutMs", DEFAULT_API_TIMEOUT_MS, least=1),
    )


def _isolation_level(given: Mapping[str, str]) -> IsolationLevel:
    names = ("isolation.level", "kafka.isolation.level")
    words = {name: given[name].lower() for name in names if name in given}
    level = _either(words, *names) or IsolationLevel.READ_COMMITTED.value
    accepted = [level.value for level in IsolationLevel]
    if level not in accepted:
        raise OptionError(f"isolation.level '{level}': accepted are {', '.join(accepted)}")
    return IsolationLevel(level)


def _either(given: Mapping[str, str], own: str, kafkas: str) -> str | None:
    """An option that has two names; both may be given if they say the same."""
    values = {value.strip() for value in (text(given, own), text(given, kafkas)) if value}
    if len(values) > 1:
        raise OptionError(f"{own} and {kafkas} do not say the same: give one")
    return next(iter(values), None)


def _duration(given: Mapping[str, str], name: str, default: int) -> int:
    """A time as Spark writes it: 15m, 30s, 500ms; a number alone is milliseconds."""
    value = given.get(name.lower())
    if value is None:
        return default
    match = _DURATION.fullmatch(value)
    if match is None or match[2].lower() not in _UNITS:
        raise OptionError(f"{name} '{value}': accepted is a time such as 15m, 30s or 500ms")
    return int(match[1]) * _UNITS[match[2].lower()]
