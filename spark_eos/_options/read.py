"""Every process. The options of a read.

Names, defaults and precedence are those of Spark's own connector. Two things differ: the default
isolation level is read_committed, and an unknown option is an error.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from spark_eos._kafka.config.client_config import ClientConfig
from spark_eos._options import offset_json
from spark_eos._options.option import Given, Option, Where, table_of
from spark_eos._options.types import LONG, boolean, choice, duration_ms, not_blank, topic, whole
from spark_eos._protocol.offsets.isolation import IsolationLevel
from spark_eos._protocol.offsets.offset_limit import (
    EARLIEST,
    LATEST,
    Everywhere,
    GlobalTimestamp,
    GroupOffsets,
    NoMatch,
    OffsetLimit,
    SpecificOffsets,
    SpecificTimestamps,
)
from spark_eos._protocol.offsets.subscription import Assign, Pattern, Subscribe, Subscription

_WORDS: Final = {"earliest": EARLIEST, "latest": LATEST}
_TIME = whole("milliseconds since 1970", least=0, most=LONG)
_OFFSETS = whole("offsets", most=LONG)


def _subscribe(value: str) -> Subscribe:
    topics = tuple(sorted({name.strip() for name in value.split(",") if name.strip()}))
    if not topics:
        raise ValueError("no topic is given")
    return Subscribe(tuple(map(topic, topics)))


def _pattern(value: str) -> Pattern:
    try:
        re.compile(not_blank(value).strip())
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"not a regular expression: {error}") from None
    return Pattern(value.strip())


def _starting(value: str) -> OffsetLimit:
    return GroupOffsets() if value.strip().lower() == "group" else _limit(value, ", group")


def _limit(value: str, more: str = "") -> OffsetLimit:
    word = value.strip().lower()
    if word in _WORDS:
        return Everywhere(_WORDS[word])
    if not word.startswith("{"):
        raise ValueError(f"accepted values are earliest, latest{more} and JSON")
    return SpecificOffsets(offset_json.offsets(value.strip()))


ASSIGN = Option(
    name="assign",
    parse=lambda value: Assign(offset_json.partitions(value.strip())),
    default=None,
    shown_default="one is required",
    doc='Partitions: `{"topic":[0,1]}`.',
)
SUBSCRIBE = Option(
    name="subscribe",
    parse=_subscribe,
    default=None,
    shown_default="one is required",
    doc="Topics, separated by commas.",
)
SUBSCRIBE_PATTERN = Option(
    name="subscribePattern",
    parse=_pattern,
    default=None,
    shown_default="one is required",
    doc="A regular expression. It may match any part of a topic's name.",
)
ISOLATION_LEVEL = Option(
    name="isolation.level",
    alias="kafka.isolation.level",
    parse=choice(*(level.value for level in IsolationLevel)),
    default=IsolationLevel.READ_COMMITTED.value,
    doc="`read_committed`, `read_uncommitted`, or `snapshot` (see below). `kafka.isolation.level`"
    " is the same option.",
)
TRANSACTION_LOG = Option(
    name="transactionLog",
    parse=not_blank,
    default=None,
    doc="For `snapshot`: the transaction log of the query whose output is read.",
)
QUERY_ID = Option(
    name="queryId",
    parse=not_blank,
    default=None,
    doc="For `snapshot`: the id of that query. Required if the log has several queries.",
)
STARTING_BATCH = Option(
    name="startingBatch",
    parse=whole("batches", least=0, most=LONG),
    default=None,
    where=Where.BATCH,
    doc="For `snapshot`: the first micro-batch whose output is read.",
)
ENDING_BATCH = Option(
    name="endingBatch",
    parse=whole("batches", least=0, most=LONG),
    default=None,
    where=Where.BATCH,
    doc="For `snapshot`: the last micro-batch whose output is read.",
)
STARTING_OFFSETS = Option(
    name="startingOffsets",
    parse=_starting,
    default=None,
    shown_default="`latest`, batch: `earliest`",
    doc='`earliest`, `latest`, `{"topic":{"0":23,"1":-1}}` with -1 for latest and -2 for earliest,'
    " or `group`: where a consumer group stopped.",
)
GROUP_ID = Option(
    name="group.id",
    alias="kafka.group.id",
    parse=lambda value: not_blank(value).strip(),
    default=None,
    doc="The group of `startingOffsets` `group` (see below). `kafka.group.id` is the same option.",
)
STARTING_TIMESTAMP = Option(
    name="startingTimestamp",
    parse=_TIME,
    default=None,
    doc="A time in milliseconds, for every partition. It overrides `startingOffsetsByTimestamp` and"
    " `startingOffsets`.",
)
STARTING_BY_TIMESTAMP = Option(
    name="startingOffsetsByTimestamp",
    parse=lambda value: offset_json.timestamps(value.strip()),
    default=None,
    doc='A time for each partition: `{"topic":{"0":1700000000000}}`. It overrides'
    " `startingOffsets`.",
)
NO_MATCH = Option(
    name="startingOffsetsByTimestampStrategy",
    parse=choice(*(choice.value for choice in NoMatch)),
    default=NoMatch.ERROR.value,
    doc="What to do in a partition without a record at or after that time: `error` or `latest`.",
)
ENDING_OFFSETS = Option(
    name="endingOffsets",
    parse=_limit,
    default=None,
    where=Where.BATCH,
    shown_default="`latest`",
    doc="Where to end. The forms of `startingOffsets` except `group`.",
)
ENDING_TIMESTAMP = Option(
    name="endingTimestamp",
    parse=_TIME,
    default=None,
    where=Where.BATCH,
    doc="A time in milliseconds, for every partition. It overrides `endingOffsetsByTimestamp` and"
    " `endingOffsets`.",
)
ENDING_BY_TIMESTAMP = Option(
    name="endingOffsetsByTimestamp",
    parse=lambda value: offset_json.timestamps(value.strip()),
    default=None,
    where=Where.BATCH,
    doc="A time for each partition. It overrides `endingOffsets`.",
)
FAIL_ON_DATA_LOSS = Option(
    name="failOnDataLoss",
    parse=boolean,
    default=True,
    doc="Lost records stop the query. With `false` the query logs a warning and goes on.",
)
MAX_OFFSETS = Option(
    name="maxOffsetsPerTrigger",
    parse=_OFFSETS,
    default=None,
    where=Where.STREAM,
    is_ignored_elsewhere=True,
    doc="The most offsets in a micro-batch, split in proportion to what each partition has.",
)
MIN_OFFSETS = Option(
    name="minOffsetsPerTrigger",
    parse=_OFFSETS,
    default=None,
    where=Where.STREAM,
    is_ignored_elsewhere=True,
    doc="Wait until this many offsets are new.",
)
MAX_DELAY = Option(
    name="maxTriggerDelay",
    parse=duration_ms,
    default=15 * 60 * 1000,
    where=Where.STREAM,
    is_ignored_elsewhere=True,
    shown_default="`15m`",
    doc="Do not wait longer than this for `minOffsetsPerTrigger`.",
)
MIN_PARTITIONS = Option(
    name="minPartitions",
    parse=whole("partitions"),
    default=None,
    doc="Divide large ranges so that there are about this many tasks.",
)
MAX_RECORDS = Option(
    name="maxRecordsPerPartition",
    parse=_OFFSETS,
    default=None,
    doc="Divide large ranges so that no task has more offsets than this.",
)
INCLUDE_HEADERS = Option(
    name="includeHeaders",
    parse=boolean,
    default=False,
    doc="Whether there is a column `headers`. It is null for a record without headers.",
)
GROUP_ID_PREFIX = Option(
    name="groupIdPrefix",
    parse=not_blank,
    default="spark-eos-source",
    doc="The group that consumers name if no group is given. They never join it or commit to it.",
)
POLL_TIMEOUT_MS = Option(
    name="kafkaConsumer.pollTimeoutMs",
    parse=whole("milliseconds"),
    default=120_000,
    doc="The longest time that a task waits for the next record.",
)
NUM_RETRIES = Option(
    name="fetchOffset.numRetries",
    parse=whole("tries"),
    default=3,
    doc="The minimum number of tries to get offsets.",
)
RETRY_INTERVAL_MS = Option(
    name="fetchOffset.retryIntervalMs",
    parse=whole("milliseconds", least=0),
    default=10,
    doc="The base of the pause between two tries. The pause doubles, up to 1 s.",
)
API_TIMEOUT_MS = Option(
    name="apiTimeoutMs",
    parse=whole("milliseconds"),
    default=60_000,
    doc="How long to try again while a leader moves or a broker restarts.",
)

READ_OPTIONS: Final = table_of(vars())

_STARTING_REASON: Final = "use startingOffsets; a query's position is in its checkpoint"
_RESERVED: Final = {
    "auto.offset.reset": _STARTING_REASON,
    "enable.auto.commit": _STARTING_REASON,
    "enable.auto.offset.store": _STARTING_REASON,
    "enable.partition.eof": "the source uses it itself",
    "allow.auto.create.topics": "the source never creates a topic",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotOptions:
    """The query whose micro-batches are read whole, and the range of micro-batches."""

    transaction_log: str
    query_id: str | None
    starting_batch: int | None
    ending_batch: int | None

    @property
    def names_batches(self) -> bool:
        """Whether a range of micro-batches is given."""
        return self.starting_batch is not None or self.ending_batch is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """The options of a read."""

    client: ClientConfig
    subscription: Subscription
    isolation_level: IsolationLevel  # Kafka's: read_committed for a snapshot
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
    """Parse the options of `readStream`."""
    return _source_options(Given(options, READ_OPTIONS, Where.STREAM, "reads"), LATEST)


def batch_options(options: Mapping[str, str]) -> SourceOptions:
    """Parse the options of `read`."""
    return _source_options(Given(options, READ_OPTIONS, Where.BATCH, "reads"), EARLIEST)


def includes_headers(options: Mapping[str, str]) -> bool:
    """Whether the frame has a column `headers`. Other options are not checked."""
    own = {name: value for name, value in options.items() if name.lower() == "includeheaders"}
    parsed = Given(own, [INCLUDE_HEADERS], Where.BOTH, "reads")
    parsed.raise_mistakes()
    return parsed[INCLUDE_HEADERS]


def _source_options(given: Given, default_start: int) -> SourceOptions:
    client = given.client(_RESERVED)
    level = IsolationLevel(given[ISOLATION_LEVEL])
    subscription = _subscription(given)
    snapshot = _snapshot(given, level)
    starting = _starting_limit(given, default_start)
    ending = _ending_limit(given, starting)
    least, most = given[MIN_OFFSETS], given[MAX_OFFSETS]
    if least is not None and most is not None and least > most:
        text = f"{MIN_OFFSETS.name} {least} is larger than {MAX_OFFSETS.name} {most}"
        given.wrong(MIN_OFFSETS, text)
    if isinstance(starting, GroupOffsets) and given.are_right(GROUP_ID) and GROUP_ID not in given:
        given.wrong(STARTING_OFFSETS, "startingOffsets 'group' needs option group.id")
    given.raise_mistakes()
    return SourceOptions(
        client=client,
        subscription=subscription,
        isolation_level=level.in_kafka,
        snapshot=snapshot,
        starting=starting,
        ending=ending,
        fail_on_data_loss=given[FAIL_ON_DATA_LOSS],
        include_headers=given[INCLUDE_HEADERS],
        min_partitions=given[MIN_PARTITIONS],
        max_records_per_partition=given[MAX_RECORDS],
        max_offsets_per_trigger=most,
        min_offsets_per_trigger=least,
        max_trigger_delay_ms=given[MAX_DELAY],
        group_id=given[GROUP_ID],
        group_id_prefix=given[GROUP_ID_PREFIX],
        poll_timeout_ms=given[POLL_TIMEOUT_MS],
        num_retries=given[NUM_RETRIES],
        retry_interval_ms=given[RETRY_INTERVAL_MS],
        api_timeout_ms=given[API_TIMEOUT_MS],
    )


def _subscription(given: Given) -> Subscription:
    options: list[Option[Any]] = [ASSIGN, SUBSCRIBE, SUBSCRIBE_PATTERN]
    there = [option for option in options if option in given]
    if len(there) != 1:
        found = " and ".join(option.name for option in there)
        text = f"{found} are given" if there else "none is given"
        text = f"one of assign, subscribe and subscribePattern is required: {text}"
        given.wrong(there[0] if there else SUBSCRIBE, text)
    return given[ASSIGN] or given[SUBSCRIBE] or given[SUBSCRIBE_PATTERN] or Assign(())


def _snapshot(given: Given, level: IsolationLevel) -> SnapshotOptions | None:
    """None at another isolation level. The options for a snapshot are mistakes there."""
    if not given.are_right(ISOLATION_LEVEL):
        return None
    if level is not IsolationLevel.SNAPSHOT:
        options: list[Option[Any]] = [TRANSACTION_LOG, QUERY_ID, STARTING_BATCH, ENDING_BATCH]
        for option in options:
            if option in given and given.are_right(option):
                given.wrong(option, f"option {option.name} needs isolation.level snapshot")
        return None
    if TRANSACTION_LOG not in given:
        given.missing(TRANSACTION_LOG, "isolation.level snapshot needs it")
    first, last = given[STARTING_BATCH], given[ENDING_BATCH]
    if first is not None and last is not None and first > last:
        given.wrong(STARTING_BATCH, f"startingBatch {first} is after endingBatch {last}")
    if first is not None or last is not None:
        for limit in _LIMITS:
            if limit in given:
                text = f"option {limit.name} cannot be combined with startingBatch or endingBatch"
                given.wrong(limit, text)
    return SnapshotOptions(
        transaction_log=given[TRANSACTION_LOG] or "",
        query_id=given[QUERY_ID],
        starting_batch=first,
        ending_batch=last,
    )


_LIMITS: Final[tuple[Option[Any], ...]] = (
    STARTING_OFFSETS,
    STARTING_TIMESTAMP,
    STARTING_BY_TIMESTAMP,
    ENDING_OFFSETS,
    ENDING_TIMESTAMP,
    ENDING_BY_TIMESTAMP,
)


def _starting_limit(given: Given, default: int) -> OffsetLimit:
    """Where to start. The precedence is Spark's: one time, a time per partition, offsets."""
    no_match = NoMatch(given[NO_MATCH])
    timestamp, timestamps = given[STARTING_TIMESTAMP], given[STARTING_BY_TIMESTAMP]
    if timestamp is not None:
        return GlobalTimestamp(timestamp, no_match)
    if timestamps is not None:
        return SpecificTimestamps(timestamps, no_match)
    limit = given[STARTING_OFFSETS] or Everywhere(default)
    if default == EARLIEST:
        reason = "nothing would be read, because a batch read ends there"
        _refuse(given, STARTING_OFFSETS, limit, LATEST, reason)
    return limit


def _ending_limit(given: Given, start: OffsetLimit) -> OffsetLimit:
    """Where to end. A partition without a record at or after the time ends at its latest offset."""
    timestamp, timestamps = given[ENDING_TIMESTAMP], given[ENDING_BY_TIMESTAMP]
    limit = given[ENDING_OFFSETS] or Everywhere(LATEST)
    if timestamp is not None:
        limit = GlobalTimestamp(timestamp, NoMatch.LATEST)
    elif timestamps is not None:
        limit = SpecificTimestamps(timestamps, NoMatch.LATEST)
    _refuse(given, ENDING_OFFSETS, limit, EARLIEST, "nothing would be read")
    if given.are_right(*_LIMITS):
        _compare(given, start, limit)
    return limit


def _refuse(
    given: Given, option: Option[Any], limit: OffsetLimit, offset: int, reason: str
) -> None:
    word = {number: word for word, number in _WORDS.items()}[offset]
    if isinstance(limit, Everywhere) and limit.offset == offset:
        given.wrong(option, f"{option.name} cannot be {word}: {reason}")
    if isinstance(limit, SpecificOffsets):
        for partition in [p for p, found in limit.offsets if found == offset][:1]:
            text = f"{option.name} of {partition} cannot be {offset} ({word}): {reason}"
            given.wrong(option, text)


def _compare(given: Given, start: OffsetLimit, end: OffsetLimit) -> None:
    """Numbers of one kind can be compared without Kafka: the end must not be before the start."""
    if isinstance(start, GlobalTimestamp) and isinstance(end, GlobalTimestamp):
        if start.timestamp > end.timestamp:
            text = f"startingTimestamp {start.timestamp} is later than endingTimestamp"
            given.wrong(STARTING_TIMESTAMP, f"{text} {end.timestamp}")
        return
    if isinstance(start, SpecificOffsets) and isinstance(end, SpecificOffsets):
        option: Option[Any] = STARTING_OFFSETS
        first, last, what = dict(start.offsets), dict(end.offsets), "Offsets"
    elif isinstance(start, SpecificTimestamps) and isinstance(end, SpecificTimestamps):
        option = STARTING_BY_TIMESTAMP
        first, last, what = dict(start.timestamps), dict(end.timestamps), "OffsetsByTimestamp"
    else:
        return
    for partition in sorted(first.keys() ^ last.keys())[:1]:
        text = f"starting{what} and ending{what} do not name the same partitions"
        given.wrong(option, f"{text}: {partition} is in one of them only")
    both = sorted(first.keys() & last.keys())
    for partition in [p for p in both if first[p] > last[p] >= 0][:1]:
        text = f"starting{what} of {partition} is {first[partition]}"
        given.wrong(option, f"{text}, after ending{what}, which is {last[partition]}")
