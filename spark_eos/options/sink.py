"""Every process. The options of a write."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from spark_eos.errors import OptionError
from spark_eos.kafka.client_config import ClientConfig
from spark_eos.options.values import (
    DEFAULT_API_TIMEOUT_MS,
    boolean,
    client_config,
    lower_case,
    milliseconds,
    refuse_unknown,
    required,
    text,
)
from spark_eos.protocol.topic_name import RULE, is_topic_name
from spark_eos.protocol.transactional_id import is_prefix

# The broker's default maximum (transaction.max.timeout.ms): a batch must be able to take its time,
# and what a crash leaves open is aborted by the next start, not by the time-out.
DEFAULT_TRANSACTION_TIMEOUT_MS: Final = 900_000
DEFAULT_TRANSACTIONAL_ID_PREFIX: Final = "spark-eos"
DEFAULT_LOG_FOLDER: Final = "transaction_state"

SINK_OPTIONS: Final = (
    "topic",
    "checkpointLocation",
    "transactionLog",
    "transactionalIdPrefix",
    "deliveryGuarantee",
    "group.id",
    "includeHeaders",
    "apiTimeoutMs",
)

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
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkOptions:
    """What a streaming write needs to know."""

    client: ClientConfig
    topic: str | None
    checkpoint_location: str
    transaction_log: str
    log_is_shared: bool
    transactional_id_prefix: str
    transaction_timeout_ms: int
    include_headers: bool
    api_timeout_ms: int
    group_id: str | None


def sink_options(options: Mapping[str, str]) -> SinkOptions:
    """Check and freeze the options of a streaming write."""
    given = lower_case(options)
    refuse_unknown(given, SINK_OPTIONS)
    guarantee = given.get("deliveryguarantee", "exactly_once")
    if guarantee != "exactly_once":
        raise OptionError(f"deliveryGuarantee '{guarantee}': accepted is exactly_once")
    client = client_config(given, _RESERVED, own=("kafka.transaction.timeout.ms",))
    checkpoint = required(given, "checkpointLocation", "a folder that survives the driver")
    return SinkOptions(
        client=client,
        topic=_topic(given.get("topic")),
        checkpoint_location=checkpoint,
        transaction_log=text(given, "transactionLog")
        or f"{checkpoint.rstrip('/')}/{DEFAULT_LOG_FOLDER}",
        log_is_shared="transactionlog" in given,
        transactional_id_prefix=_prefix(given),
        transaction_timeout_ms=milliseconds(
            given, "kafka.transaction.timeout.ms", DEFAULT_TRANSACTION_TIMEOUT_MS, least=1000
        ),
        include_headers=boolean(given, "includeHeaders", default=True),
        api_timeout_ms=milliseconds(given, "apiTimeoutMs", DEFAULT_API_TIMEOUT_MS, least=1),
        group_id=text(given, "group.id"),
    )


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
