"""Driver. An admin client whose failures have one clear text each."""

from collections.abc import Callable
from typing import Any, Final, TypeVar

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    ConfigResource,
    ResourceType,
)

from spark_eos._deadline import Backoff, Deadline
from spark_eos._kafka.config.client_config import ClientConfig
from spark_eos._kafka.to_error import NOT_AUTHORIZED, NOT_FOUND, Request, no_answer, to_error
from spark_eos.errors import BrokerUnreachableError, SparkEosError

T = TypeVar("T")

# How long the first client gets for an answer; each further one gets more.
FIRST_ATTEMPT_S: Final = 1.0
ATTEMPT_GROWTH: Final = 1.5


def timeout_s(deadline: Deadline) -> float:
    """What is left, as librdkafka takes it: it knows no zero."""
    return max(0.001, deadline.remaining_s)


def ask_any_broker(
    config: ClientConfig, ask: Callable[["Admin", Deadline], T], deadline: Deadline
) -> T:
    """The answer to a question that every broker can answer.

    librdkafka asks one broker and waits for it: the controller. Kafka 4 names any of its brokers as
    that, also one that is frozen. So where no answer comes, a new client asks again.
    """
    backoff, limit_s = Backoff(deadline), FIRST_ATTEMPT_S
    while True:
        # The last attempt lasts until the deadline, or it would be too short to say what is wrong.
        is_last = deadline.remaining_s < limit_s + FIRST_ATTEMPT_S
        attempt = deadline if is_last else deadline.at_most_s(limit_s)
        try:
            return ask(Admin(config), attempt)
        except BrokerUnreachableError:
            if not backoff.wait():
                raise
        limit_s *= ATTEMPT_GROWTH


class Admin:
    """An admin client, and the last failure of a connection that it told."""

    def __init__(self, config: ClientConfig) -> None:
        self._config = config
        self._failure: KafkaError | None = None
        self.client = AdminClient(
            config.librdkafka(
                **{
                    "error_cb": self._remember,
                    "reconnect.backoff.ms": 10,
                    "statistics.interval.ms": 0,
                    "log_level": 0,
                }
            )
        )

    def result(self, future: Any, to: str, deadline: Deadline) -> Any:
        """The future's value. KafkaException is the broker's answer; no answer raises here."""
        try:
            while not future.done() and not deadline.passed:
                self.client.poll(0.01)  # delivers the failures of connections
                if self._login_refused():
                    break
            return future.result(0)
        except KafkaException as exception:
            if exception.args[0].code() >= 0 or exception.args[0].code() in NOT_FOUND:
                raise
        except TimeoutError:
            pass
        raise self._unreachable(to)

    def setting(self, kind: ResourceType, name: str, key: str, deadline: Deadline) -> int | None:
        """A setting of a broker or topic; None where this user may not see it."""
        resource = ConfigResource(kind, name)
        futures = self.client.describe_configs([resource], request_timeout=timeout_s(deadline))
        asked = f"describe the settings of {kind.name.lower()} {name}"
        try:
            entries = self.result(futures[resource], asked, deadline)
        except KafkaException as exception:
            if exception.args[0].code() in NOT_AUTHORIZED:
                return None
            raise self.to_error(exception, asked, "DESCRIBE_CONFIGS on the cluster") from None
        return int(entries[key].value) if key in entries else None

    def to_error(self, exception: KafkaException, to: str, rights: str) -> SparkEosError:
        """The error for an answer that says no, to a question that takes these rights."""
        error = exception.args[0]
        request = Request(servers=self._config.bootstrap_servers, to=to, rights=rights)
        said = self._config.redact(error.str())
        return to_error(error.code(), said, request, retriable=error.retriable())

    def _unreachable(self, to: str) -> SparkEosError:
        reason = "nothing was heard of it"
        if self._failure is not None:
            reason = self._config.redact(self._failure.str())
        servers = self._config.bootstrap_servers
        return no_answer(servers, to, reason, login_refused=self._login_refused())

    def _login_refused(self) -> bool:
        return self._failure is not None and self._failure.code() == KafkaError._AUTHENTICATION

    def _remember(self, error: KafkaError) -> None:
        # "All brokers are down" follows every failure and says less than the failure itself.
        if error.code() != KafkaError._ALL_BROKERS_DOWN or self._failure is None:
            self._failure = error
