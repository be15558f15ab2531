"""Option strings in, frozen values out: the only place with defaults.

Keys arrive in lower case: Spark's option maps do not know case. Whatever is wrong is found here,
before a row is written, and named with its option, its value and what is accepted.
"""

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from spark_eos.errors import OptionError
from spark_eos.kafka.client_config import ClientConfig
from spark_eos.protocol.transactional_id import is_prefix

# The broker's default maximum (transaction.max.timeout.ms): a batch must be able to take its time,
# and what a crash leaves open is aborted by the next start, not by the time-out.
DEFAULT_TRANSACTION_TIMEOUT_MS: Final = 900_000
DEFAULT_API_TIMEOUT_MS: Final = 60_000
DEFAULT_TRANSACTIONAL_ID_PREFIX: Final = "spark-eos"
DEFAULT_LOG_FOLDER: Final = "transaction_state"

_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
_KAFKA: Final = "kafka."

SINK_OPTIONS: Final = (
    "topic",
    "checkpointLocation",
    "transactionLog",
    "transactionalIdPrefix",
    "deliveryGuarantee",
    "includeHeaders",
    "apiTimeoutMs",
)
# Spark puts these beside the user's own.
_SPARKS_OWN: Final = ("queryname",)

# What exactly-once rests on, and what replaces it.
_RESERVED: Final = {
    "transactional.id": "it is derived; set transactionalIdPrefix",
    "enable.idempotence": "it is always on",
    "acks": "it is always 'all'",
    "request.required.acks": "it is always 'all'",
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


def sink_options(options: Mapping[str, str]) -> SinkOptions:
    """Check and freeze the options of a streaming write."""
    given = {name.lower(): value for name, value in options.items()}
    _refuse_unknown(given)
    client = _client(given)
    checkpoint = _required(given, "checkpointLocation", "a folder that survives the driver")
    return SinkOptions(
        client=client,
        topic=_topic(given.get("topic")),
        checkpoint_location=checkpoint,
        transaction_log=_text(given, "transactionLog")
        or f"{checkpoint.rstrip('/')}/{DEFAULT_LOG_FOLDER}",
        log_is_shared="transactionlog" in given,
        transactional_id_prefix=_prefix(given),
        transaction_timeout_ms=_milliseconds(
            given, "kafka.transaction.timeout.ms", DEFAULT_TRANSACTION_TIMEOUT_MS, least=1000
        ),
        include_headers=_boolean(given, "includeHeaders", default=True),
        api_timeout_ms=_milliseconds(given, "apiTimeoutMs", DEFAULT_API_TIMEOUT_MS, least=1),
    )


def _refuse_unknown(given: Mapping[str, str]) -> None:
    known = {name.lower(): name for name in SINK_OPTIONS}
    for name in given:
        if name in known or name in _SPARKS_OWN or name.startswith(_KAFKA):
            continue
        if f"{_KAFKA}{name}" in ("kafka.bootstrap.servers", "kafka.transaction.timeout.ms"):
            raise OptionError(f"unknown option '{name}': did you mean '{_KAFKA}{name}'?")
        close = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean '{known[close[0]]}'? " if close else ""
        raise OptionError(
            f"unknown option '{name}': {hint}accepted are {', '.join(SINK_OPTIONS)} and kafka.*"
        )
    guarantee = given.get("deliveryguarantee", "exactly_once")
    if guarantee != "exactly_once":
        raise OptionError(f"deliveryGuarantee '{guarantee}': accepted is exactly_once")


def _client(given: Mapping[str, str]) -> ClientConfig:
    properties = {
        name.removeprefix(_KAFKA): value
        for name, value in given.items()
        if name.startswith(_KAFKA) and name != "kafka.transaction.timeout.ms"
    }
    for name, reason in _RESERVED.items():
        if name in properties:
            raise OptionError(f"option kafka.{name} cannot be set: {reason}")
    if not properties.get("bootstrap.servers", "").strip():
        raise OptionError("option kafka.bootstrap.servers is missing: host:port[,host:port...]")
    return ClientConfig.from_options(properties)


def _topic(topic: str | None) -> str | None:
    if topic is not None and (not _TOPIC.fullmatch(topic) or topic in (".", "..")):
        raise OptionError(
            f"topic '{topic}': a topic's name has 1 to 249 letters, digits, '.', '_' or '-'"
        )
    return topic


def _prefix(given: Mapping[str, str]) -> str:
    prefix = given.get("transactionalidprefix", DEFAULT_TRANSACTIONAL_ID_PREFIX)
    if not is_prefix(prefix):
        raise OptionError(
            f"transactionalIdPrefix '{prefix}': 1 to 128 letters, digits, '.', '_' or '-'"
        )
    return prefix


def _text(given: Mapping[str, str], name: str) -> str | None:
    value = given.get(name.lower())
    if value is not None and not value.strip():
        raise OptionError(f"option {name} is empty")
    return value


def _required(given: Mapping[str, str], name: str, what: str) -> str:
    value = _text(given, name)
    if value is None:
        raise OptionError(
            f"option {name} is missing: set {what} with .option('{name}', ...); a location that is"
            " set for the session only does not reach the sink"
        )
    return value


def _milliseconds(given: Mapping[str, str], name: str, default: int, *, least: int) -> int:
    value = given.get(name.lower())
    if value is None:
        return default
    try:
        number = int(value)
    except ValueError:
        number = 0
    if not least <= number < 2**31:
        raise OptionError(f"{name} '{value}': {least} to {2**31 - 1} milliseconds are accepted")
    return number


def _boolean(given: Mapping[str, str], name: str, *, default: bool) -> bool:
    value = given.get(name.lower(), str(default)).lower()
    if value not in ("true", "false"):
        raise OptionError(f"{name} '{value}': true or false is accepted")
    return value == "true"
