"""Every process. The options of a streaming or batch write, exactly once or at least once."""

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
    doc="Spark's checkpoint, which holds the query's id. Set it as an option of the query. The sink"
    " does not see a location that is set for the session only.",
)
TOPIC = Option(
    name="topic",
    parse=topic,
    default=None,
    doc="The topic of all rows. If it is not set, the column `topic` names the topic of each row.",
)
TRANSACTION_LOG = Option(
    name="transactionLog",
    parse=not_blank,
    default=None,
    shown_default="`<checkpointLocation>/transaction_state`; batch: none",
    doc="The Delta table with the decisions. Many queries may share it. It must not be inside"
    " another table or another query's checkpoint.",
)
TRANSACTIONAL_ID_PREFIX = Option(
    name="transactionalIdPrefix",
    parse=prefix,
    default="spark-eos",
    doc="Transactional ids are `<prefix>-<query id>-<partition>`. Grant ACLs by this prefix.",
)
TRANSACTION_TIMEOUT_MS = Option(
    name="kafka.transaction.timeout.ms",
    parse=whole("milliseconds", least=1000),
    default=900_000,  # the broker's default maximum, see docs/design/decision.md
    doc="When the brokers abort an open transaction. Their limit is `transaction.max.timeout.ms`.",
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
    doc="A consumer group. The source's offsets are committed to it in one decision with the rows.",
)
DELIVERY_GUARANTEE = Option(
    name="deliveryGuarantee",
    parse=choice(EXACTLY_ONCE, AT_LEAST_ONCE),
    default=EXACTLY_ONCE,
    doc="`exactly_once`, or `at_least_once` without transactions and without a log.",
)
TXN_APP_ID = Option(
    name="txnAppId",
    parse=not_blank,
    default=None,
    where=Where.BATCH,
    doc="The name of an application. Each `txnVersion` of it is written once. Set both with"
    " `transactionLog`, or none of the three.",
)
TXN_VERSION = Option(
    name="txnVersion",
    parse=whole("versions", least=0, most=LONG),
    default=None,
    where=Where.BATCH,
    doc="The number of this write in the application. It only goes up.",
)
API_TIMEOUT_MS = Option(
    name="apiTimeoutMs",
    parse=whole("milliseconds"),
    default=60_000,
    doc="The longest time that one step waits for the brokers.",
)
ACKNOWLEDGE = Option(
    name="acknowledge",
    parse=not_blank,
    default=None,
    doc="The code from an error that stopped the query, to accept the risk that the error names. It"
    " is valid for that one state, and the log records it.",
)

WRITE_OPTIONS: Final = table_of(vars())

# Exactly-once depends on these settings. The text names what to use instead.
_RESERVED: Final = {
    "transactional.id": "it is derived; set transactionalIdPrefix",
    "enable.idempotence": "it is always on",
    "acks": "it is always 'all'",
    "request.required.acks": "it is always 'all'",
    "group.id": "use group.id, without kafka., to commit the source's offsets with the rows",
    "statistics.interval.ms": "the sink needs the statistics itself",
    "delivery.report.only.error": "the sink needs every delivery report",
    "retries": "librdkafka retries until message.timeout.ms",
    "message.send.max.retries": "librdkafka retries until message.timeout.ms",
    "enable.gapless.guarantee": "transactions guarantee this already",
    "allow.auto.create.topics": "the sink never creates a topic",
}

# Applications and streaming queries share the space of query ids. Derived (version 5) and Spark's
# random (version 4) UUIDs never collide.
_APPLICATIONS: Final = uuid.uuid5(uuid.NAMESPACE_URL, "spark-eos:txnAppId")


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """The options of every write."""

    client: ClientConfig
    topic: str | None
    transactional_id_prefix: str
    transaction_timeout_ms: int
    include_headers: bool
    api_timeout_ms: int
    acknowledge: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AtLeastOnceOptions(WriteOptions):
    """A streaming write at least once, with the log of the query's earlier exactly-once runs."""

    checkpoint_location: str | None
    transaction_log: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkOptions(WriteOptions):
    """A streaming write, exactly once."""

    checkpoint_location: str
    transaction_log: str
    log_is_shared: bool
    group_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchWriteOptions(WriteOptions):
    """A batch write, exactly once. Log and application are both given, or neither is."""

    transaction_log: str | None
    application: str | None  # txnAppId
    query_id: str
    version: int


def sink_options(options: Mapping[str, str]) -> SinkOptions | AtLeastOnceOptions:
    """Parse the options of a streaming write. SinkOptions means exactly once."""
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
            "set a folder that survives the driver with .option('checkpointLocation', ...). The"
            " sink does not see a location that is set for the session only",
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
    """Parse the options of `df.write`. BatchWriteOptions means exactly once."""
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
    if (TXN_APP_ID in given) != (TXN_VERSION in given):
        missing: Option[Any] = TXN_VERSION if TXN_APP_ID in given else TXN_APP_ID
        given.missing(missing, "txnAppId and txnVersion belong together")
    elif TXN_APP_ID in given and TRANSACTION_LOG not in given:
        given.missing(
            TRANSACTION_LOG,
            "the log keeps txnAppId and txnVersion. Set a Delta table that every run can reach",
        )
    elif TRANSACTION_LOG in given and TXN_APP_ID not in given:
        given.missing(
            TXN_APP_ID,
            "a later run finds a write in transactionLog by txnAppId and txnVersion. Set both, or"
            " remove transactionLog",
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
    """Whether that is the guarantee. If so, options that need transactions are mistakes."""
    if given[DELIVERY_GUARANTEE] == EXACTLY_ONCE:
        return False
    for option in (*exactly_once_only, TRANSACTION_TIMEOUT_MS):
        if option in given and given.are_right(option):
            text = f"option {option.name} has no meaning with deliveryGuarantee {AT_LEAST_ONCE}"
            given.wrong(option, text)
    return True
