"""Every process. The options of a write: streaming or batch, exactly once or at least once."""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from spark_eos._kafka.config.client_config import ClientConfig
from spark_eos._options.option import Given, Option, Where, table_of
from spark_eos._options.types import LONG, boolean, choice, not_blank, prefix, topic, whole

EXACTLY_ONCE: Final = "exactly_once"
AT_LEAST_ONCE: Final = "at_least_once"
DEFAULT_LOG_FOLDER: Final = "transaction_state"

CHECKPOINT_LOCATION = Option(
    name="checkpointLocation",
    parse=not_blank,
    default=None,
    where=Where.STREAM,
    shown_default="required",
    doc="Spark's checkpoint. It gives the query its id. Set it as an option of the query: a"
    " location that is set for the session only does not reach the sink.",
)
TOPIC = Option(
    name="topic",
    parse=topic,
    default=None,
    doc="The topic of all rows. Without it, the column `topic` names the topic of each row.",
)
TRANSACTION_LOG = Option(
    name="transactionLog",
    parse=not_blank,
    default=None,
    shown_default="`<checkpointLocation>/transaction_state`; batch: none",
    doc="The Delta table with the decisions. Many queries may share one. It must not lie inside of"
    " another table or of another query's checkpoint.",
)
TRANSACTIONAL_ID_PREFIX = Option(
    name="transactionalIdPrefix",
    parse=prefix,
    default="spark-eos",
    doc="Transactional ids are `<prefix>-<query id>-<partition>`. Grant rights by prefix.",
)
TRANSACTION_TIMEOUT_MS = Option(
    name="kafka.transaction.timeout.ms",
    parse=whole("milliseconds", least=1000),
    # The broker's default maximum: a batch must be able to take its time, and what a crash leaves
    # open is aborted by the next start, not by the time-out.
    default=900_000,
    doc="When the brokers abort an open transaction. At most their `transaction.max.timeout.ms`.",
)
INCLUDE_HEADERS = Option(
    name="includeHeaders",
    parse=boolean,
    default=True,
    doc="Whether a column `headers` is written.",
)
GROUP_ID = Option(
    name="group.id",
    parse=not_blank,
    default=None,
    where=Where.STREAM,
    doc="A consumer group. The source's offsets are committed to it in the same decision as the"
    " rows.",
)
DELIVERY_GUARANTEE = Option(
    name="deliveryGuarantee",
    parse=choice(EXACTLY_ONCE, AT_LEAST_ONCE),
    default=EXACTLY_ONCE,
    doc="Or `at_least_once`: no transaction and no log.",
)
TXN_APP_ID = Option(
    name="txnAppId",
    parse=not_blank,
    default=None,
    where=Where.BATCH,
    doc="The name of an application whose writes are done once for each `txnVersion`. Set both with"
    " `transactionLog`, or none of the three.",
)
TXN_VERSION = Option(
    name="txnVersion",
    parse=whole("versions", least=0, most=LONG),
    default=None,
    where=Where.BATCH,
    doc="The version of the application that this write is. Versions only go up.",
)
API_TIMEOUT_MS = Option(
    name="apiTimeoutMs",
    parse=whole("milliseconds"),
    default=60_000,
    doc="How long one step may wait for the brokers.",
)
ACKNOWLEDGE = Option(
    name="acknowledge",
    parse=not_blank,
    default=None,
    doc="The code that an error names, to go on where the query has stopped for good. It holds for"
    " one state, and the log keeps a row of it.",
)

WRITE_OPTIONS: Final = table_of(vars())

# What exactly-once rests on, and what replaces it.
_RESERVED: Final = {
    "transactional.id": "it is derived; set transactionalIdPrefix",
    "enable.idempotence": "it is always on",
    "acks": "it is always 'all'",
    "request.required.acks": "it is always 'all'",
    "group.id": "use group.id, without kafka., to commit the source's offsets with the rows",
    "statistics.interval.ms": "the sink uses the statistics itself",
    "delivery.report.only.error": "the sink needs every delivery report",
    "retries": "librdkafka retries until message.timeout.ms",
    "message.send.max.retries": "librdkafka retries until message.timeout.ms",
    "enable.gapless.guarantee": "transactions give it",
    "allow.auto.create.topics": "a topic that is written is never created",
}

# The names of applications and the ids of queries share one space: Spark draws its ids at random,
# these are derived, and neither can be the other.
_APPLICATIONS: Final = uuid.uuid5(uuid.NAMESPACE_URL, "spark-eos:txnAppId")


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """What every write needs to know."""

    client: ClientConfig
    topic: str | None
    transactional_id_prefix: str
    transaction_timeout_ms: int
    include_headers: bool
    api_timeout_ms: int
    acknowledge: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AtLeastOnceOptions(WriteOptions):
    """What a streaming write at least once needs to know of the same query's exactly-once runs."""

    checkpoint_location: str | None
    transaction_log: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkOptions(WriteOptions):
    """What a streaming write needs to know."""

    checkpoint_location: str
    transaction_log: str
    log_is_shared: bool
    group_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchWriteOptions(WriteOptions):
    """What a batch write needs to know. Log and application come together, or not at all."""

    transaction_log: str | None
    application: str | None  # txnAppId
    query_id: str
    version: int


def sink_options(options: Mapping[str, str]) -> SinkOptions | AtLeastOnceOptions:
    """Check and freeze the options of a streaming write; SinkOptions where it is exactly once."""
    given = Given(options, WRITE_OPTIONS, Where.STREAM, "writes")
    common = _write_options(given)
    checkpoint = given[CHECKPOINT_LOCATION]
    log = given[TRANSACTION_LOG]
    if checkpoint is not None and log is None:
        log = f"{checkpoint.rstrip('/')}/{DEFAULT_LOG_FOLDER}"
    if _is_at_least_once(given, GROUP_ID):
        given.raise_mistakes()
        return AtLeastOnceOptions(**common, checkpoint_location=checkpoint, transaction_log=log)
    if CHECKPOINT_LOCATION not in given:
        given.missing(
            CHECKPOINT_LOCATION,
            "set a folder that survives the driver with .option('checkpointLocation', ...); a"
            " location that is set for the session only does not reach the sink",
        )
    given.raise_mistakes()
    return SinkOptions(
        **common,
        checkpoint_location=checkpoint or "",
        transaction_log=log or "",
        log_is_shared=TRANSACTION_LOG in given,
        group_id=given[GROUP_ID],
    )


def batch_write_options(options: Mapping[str, str]) -> BatchWriteOptions | WriteOptions:
    """Check and freeze the options of `df.write`; BatchWriteOptions where it is exactly once."""
    given = Given(options, WRITE_OPTIONS, Where.BATCH, "writes")
    common = _write_options(given)
    if _is_at_least_once(given, TXN_APP_ID, TXN_VERSION, TRANSACTION_LOG):
        given.raise_mistakes()
        return WriteOptions(**common)
    _check_application(given)
    given.raise_mistakes()
    app_id = given[TXN_APP_ID]
    query_id = uuid.uuid4() if app_id is None else uuid.uuid5(_APPLICATIONS, app_id)
    return BatchWriteOptions(
        **common,
        transaction_log=given[TRANSACTION_LOG],
        application=app_id,
        query_id=str(query_id),
        version=given[TXN_VERSION] or 0,
    )


def _check_application(given: Given) -> None:
    """The three options that make a write idempotent belong together."""
    if (TXN_APP_ID in given) != (TXN_VERSION in given):
        missing: Option[Any] = TXN_VERSION if TXN_APP_ID in given else TXN_APP_ID
        given.missing(missing, "txnAppId and txnVersion belong together")
    elif TXN_APP_ID in given and TRANSACTION_LOG not in given:
        given.missing(
            TRANSACTION_LOG,
            "txnAppId and txnVersion are remembered there, in a Delta table that every run of the"
            " job can reach",
        )
    elif TRANSACTION_LOG in given and TXN_APP_ID not in given:
        given.missing(
            TXN_APP_ID,
            "transactionLog remembers a write by txnAppId and txnVersion, and without them no later"
            " run can find it. Set both, or remove transactionLog",
        )


def _write_options(given: Given) -> dict[str, Any]:
    return {
        "client": given.client(_RESERVED),
        "topic": given[TOPIC],
        "transactional_id_prefix": given[TRANSACTIONAL_ID_PREFIX],
        "transaction_timeout_ms": given[TRANSACTION_TIMEOUT_MS],
        "include_headers": given[INCLUDE_HEADERS],
        "api_timeout_ms": given[API_TIMEOUT_MS],
        "acknowledge": given[ACKNOWLEDGE],
    }


def _is_at_least_once(given: Given, *exactly_once_only: Option[Any]) -> bool:
    """Whether that is asked for. Then an option that only transactions give a meaning is wrong."""
    if given[DELIVERY_GUARANTEE] == EXACTLY_ONCE:
        return False
    for option in (*exactly_once_only, TRANSACTION_TIMEOUT_MS):
        if option in given and given.are_right(option):
            text = f"option {option.name} has no meaning with deliveryGuarantee {AT_LEAST_ONCE}"
            given.wrong(option, text)
    return True
