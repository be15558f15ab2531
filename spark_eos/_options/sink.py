"""Every process. The options of a write: streaming or batch, exactly once or at least once."""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from spark_eos._kafka.config.client_config import ClientConfig
from spark_eos._options.values import (
    DEFAULT_API_TIMEOUT_MS,
    boolean,
    client_config,
    lower_case,
    milliseconds,
    number,
    refuse_unknown,
    required,
    text,
)
from spark_eos._protocol.offsets.topic_name import RULE, is_topic_name
from spark_eos._protocol.transactions.transactional_id import is_prefix
from spark_eos.errors import OptionError

# The broker's default maximum (transaction.max.timeout.ms): a batch must be able to take its time,
# and what a crash leaves open is aborted by the next start, not by the time-out.
DEFAULT_TRANSACTION_TIMEOUT_MS: Final = 900_000
DEFAULT_TRANSACTIONAL_ID_PREFIX: Final = "spark-eos"
DEFAULT_LOG_FOLDER: Final = "transaction_state"

EXACTLY_ONCE: Final = "exactly_once"
AT_LEAST_ONCE: Final = "at_least_once"

WRITE_OPTIONS: Final = (
    "topic",
    "transactionLog",
    "transactionalIdPrefix",
    "deliveryGuarantee",
    "includeHeaders",
    "apiTimeoutMs",
    "acknowledge",
)
SINK_OPTIONS: Final = (*WRITE_OPTIONS, "checkpointLocation", "group.id")
BATCH_WRITE_OPTIONS: Final = (*WRITE_OPTIONS, "txnAppId", "txnVersion")

# The names of applications and the ids of queries share one space: Spark draws its ids at random,
# these are derived, and neither can be the other.
_APPLICATIONS: Final = uuid.uuid5(uuid.NAMESPACE_URL, "spark-eos:txnAppId")

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


STREAMING: Final = (SinkOptions, AtLeastOnceOptions)


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchWriteOptions(WriteOptions):
    """What a batch write needs to know. Log and application come together, or not at all."""

    transaction_log: str | None
    application: str | None  # txnAppId
    query_id: str
    version: int


def sink_options(options: Mapping[str, str]) -> SinkOptions | AtLeastOnceOptions:
    """Check and freeze the options of a streaming write; SinkOptions where it is exactly once."""
    given = lower_case(options)
    refuse_unknown(given, SINK_OPTIONS)
    common = _write_options(given)
    if _is_at_least_once(given, "group.id"):
        location = text(given, "checkpointLocation")
        return AtLeastOnceOptions(
            **common, checkpoint_location=location, transaction_log=_log_location(given, location)
        )
    checkpoint = required(given, "checkpointLocation", "a folder that survives the driver")
    return SinkOptions(
        **common,
        checkpoint_location=checkpoint,
        transaction_log=_log_location(given, checkpoint) or "",
        log_is_shared="transactionlog" in given,
        group_id=text(given, "group.id"),
    )


def batch_write_options(options: Mapping[str, str]) -> BatchWriteOptions | WriteOptions:
    """Check and freeze the options of `df.write`; BatchWriteOptions where it is exactly once."""
    given = lower_case(options)
    refuse_unknown(given, BATCH_WRITE_OPTIONS)
    common = _write_options(given)
    app_id, version = text(given, "txnAppId"), number(given, "txnVersion", least=0)
    log = text(given, "transactionLog")
    if (app_id is None) != (version is None):
        missing = "txnAppId" if app_id is None else "txnVersion"
        raise OptionError(f"option {missing} is missing: txnAppId and txnVersion belong together")
    if _is_at_least_once(given, "txnAppId", "transactionLog"):
        return WriteOptions(**common)
    if app_id is not None and log is None:
        raise OptionError(
            "option transactionLog is missing: txnAppId and txnVersion are remembered there, in a"
            " Delta table that every run of the job can reach"
        )
    if log is not None and app_id is None:
        raise OptionError(
            "option txnAppId is missing: transactionLog remembers a write by txnAppId and"
            " txnVersion, and without them no later run can find it. Set both, or remove"
            " transactionLog"
        )
    query_id = uuid.uuid4() if app_id is None else uuid.uuid5(_APPLICATIONS, app_id)
    return BatchWriteOptions(
        **common,
        transaction_log=log,
        application=app_id,
        query_id=str(query_id),
        version=version or 0,
    )


def _write_options(given: Mapping[str, str]) -> dict[str, Any]:
    return {
        "client": client_config(given, _RESERVED, own=("kafka.transaction.timeout.ms",)),
        "topic": _topic(given.get("topic")),
        "transactional_id_prefix": _prefix(given),
        "transaction_timeout_ms": milliseconds(
            given, "kafka.transaction.timeout.ms", DEFAULT_TRANSACTION_TIMEOUT_MS, least=1000
        ),
        "include_headers": boolean(given, "includeHeaders", default=True),
        "api_timeout_ms": milliseconds(given, "apiTimeoutMs", DEFAULT_API_TIMEOUT_MS, least=1),
        "acknowledge": text(given, "acknowledge"),
    }


def _log_location(given: Mapping[str, str], checkpoint: str | None) -> str | None:
    """The log of a streaming write."""
    default = None if checkpoint is None else f"{checkpoint.rstrip('/')}/{DEFAULT_LOG_FOLDER}"
    return text(given, "transactionLog") or default


def _is_at_least_once(given: Mapping[str, str], *exactly_once_only: str) -> bool:
    """Whether that is asked for; then raise for an option that only transactions give a meaning."""
    value = given.get("deliveryguarantee", EXACTLY_ONCE).lower()
    if value not in (EXACTLY_ONCE, AT_LEAST_ONCE):
        raise OptionError(
            f"deliveryGuarantee '{value}': accepted are {EXACTLY_ONCE}, {AT_LEAST_ONCE}"
        )
    if value == EXACTLY_ONCE:
        return False
    for name in (*exactly_once_only, "kafka.transaction.timeout.ms"):
        if name.lower() in given:
            raise OptionError(f"option {name} has no meaning with deliveryGuarantee at_least_once")
    return True


def _topic(topic: str | None) -> str | None:
    if topic is not None and not is_topic_name(topic):
        raise OptionError(f"topic '{topic}': {RULE}")
    return topic


def _prefix(given: Mapping[str, str]) -> str:
    prefix = given.get("transactionalidprefix", DEFAULT_TRANSACTIONAL_ID_PREFIX)
    if not is_prefix(prefix):
        raise OptionError(
            f"transactionalIdPrefix '{prefix}': 1 to 128 letters, digits, '.', '_' or '-'"
        )
    return prefix
