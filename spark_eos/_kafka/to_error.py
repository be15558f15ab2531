"""Every process. Turns the error codes of Kafka and librdkafka (below zero) into errors."""

from dataclasses import asdict, dataclass
from typing import Final

from confluent_kafka import KafkaError

from spark_eos.errors import (
    BrokerUnreachableError,
    DeliveryError,
    FencedError,
    OptionError,
    SparkEosError,
)

NOT_AUTHORIZED: Final = frozenset(
    {
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    }
)
# librdkafka's own codes for a topic or partition that its metadata does not have.
NOT_FOUND: Final = frozenset(
    {KafkaError._UNKNOWN_PARTITION, KafkaError._UNKNOWN_TOPIC, KafkaError._NOENT}
)
# Answers while a leader or a coordinator moves. librdkafka does not call them retriable.
TRANSIENT: Final = frozenset(
    {
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.NOT_COORDINATOR,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.NOT_CONTROLLER,
        KafkaError.REQUEST_TIMED_OUT,
        KafkaError.NETWORK_EXCEPTION,
        KafkaError.UNSTABLE_OFFSET_COMMIT,
    }
)
_FENCED: Final = frozenset(
    {KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH}
)
_NOT_ALLOWED: Final = "{servers} does not allow this user to {to}: grant {rights}"
_NO_TOPIC: Final = "topic '{topic}' does not exist. Create it, or correct 'topic'"
_ROW_REFUSED: Final = "topic '{topic}' does not take a record as it is: {said}. "
# The job is wrong: a repeated request or row would be refused again.
_MISTAKES: Final = dict.fromkeys(NOT_AUTHORIZED, _NOT_ALLOWED) | {
    KafkaError.INVALID_TRANSACTION_TIMEOUT: "kafka.transaction.timeout.ms is above the broker's"
    " transaction.max.timeout.ms. Lower the option, or raise the broker's setting",
    KafkaError.MSG_SIZE_TOO_LARGE: "a record of {record_size} bytes, or the batch that librdkafka"
    " put it into, is larger than topic '{topic}' takes. Raise the topic's max.message.bytes and"
    " the option kafka.message.max.bytes, or write smaller records; where records are small, lower"
    " kafka.batch.size to below max.message.bytes",
    KafkaError.INVALID_TIMESTAMP: _ROW_REFUSED + "See column 'timestamp' and the topic's"
    " message.timestamp.before.max.ms and message.timestamp.after.max.ms",
    KafkaError.INVALID_RECORD: _ROW_REFUSED + "A compacted topic needs a key in each row, see"
    " column 'key'. See also the topic's message.timestamp.before.max.ms and"
    " message.timestamp.after.max.ms",
    KafkaError.POLICY_VIOLATION: _ROW_REFUSED + "A policy of the brokers refuses it",
    KafkaError._UNKNOWN_TOPIC: _NO_TOPIC,
    KafkaError.UNKNOWN_TOPIC_OR_PART: _NO_TOPIC,
    KafkaError._UNKNOWN_PARTITION: "topic '{topic}' has no partition of the number in column"
    " 'partition'",
}
# For error texts of a write without a transaction.
WRITTEN_AGAIN: Final = (
    "What the broker took before stays visible (deliveryGuarantee at_least_once), and the next try"
    " writes it again"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What the brokers were asked to do, and the rights that it needs."""

    servers: str
    to: str  # "describe topic 'orders'"
    rights: str  # "DESCRIBE on topic 'orders'"
    topic: str | None = None
    group_id: str | None = None
    transactional_id: str | None = None
    is_write: bool = False  # by a task, which may be repeated
    record_size: int | None = None


def to_error(code: int, said: str, request: Request, *, retriable: bool = False) -> SparkEosError:
    """The error for a refusal. `said` is the broker's answer, without secrets."""
    fields = {**asdict(request), "said": said}
    if code in _MISTAKES:
        return OptionError(_MISTAKES[code], **fields)
    if request.is_write:
        return DeliveryError("{servers} did not {to}: {said}" + _after(code, request), **fields)
    if code in _FENCED and request.transactional_id is not None:
        text = "{servers} refused to {to}: {said}. Another driver took this id over"
        return FencedError(text, **fields)
    if retriable or code in TRANSIENT:
        return BrokerUnreachableError("{servers} did not {to}: {said}", **fields)
    return OptionError("{servers} refused to {to}: {said}", **fields)


def _after(code: int, request: Request) -> str:
    """What a failed write left behind, for its error text."""
    if request.transactional_id is None:
        return f". {WRITTEN_AGAIN}"
    if code in _FENCED:
        return (
            ". The transaction was taken over by another attempt or driver, or timed out because"
            " kafka.transaction.timeout.ms is shorter than the task. Nothing of it is visible"
        )
    return ""


def no_answer(servers: str, to: str, reason: str, *, login_refused: bool) -> SparkEosError:
    """The error for brokers that did not answer within the deadline."""
    fields = {"servers": servers, "to": to, "reason": reason}
    if login_refused:
        text = "{servers} refused the login, see kafka.security.protocol and kafka.sasl.*: {reason}"
        return OptionError(text, **fields)
    text = "{servers} did not {to} within the deadline: {reason}"
    return BrokerUnreachableError(text, **fields)
