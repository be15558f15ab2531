"""Every process. An admin client with a limit for each wait and one error for each failure."""

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

# The limit of the first attempt. Each further attempt gets more time.
FIRST_ATTEMPT_S: Final = 1.0
ATTEMPT_GROWTH: Final = 1.5


def timeout_s(deadline: Deadline) -> float:
    """The time that is left. librdkafka accepts no zero."""
    return max(0.001, deadline.remaining_s)


def ask_any_broker(
    config: ClientConfig, ask: Callable[["Admin", Deadline], T], deadline: Deadline
) -> T:
    """Ask any broker. Without an answer a new client asks: the first waits for one broker alone."""
    backoff, limit_s = Backoff(deadline), FIRST_ATTEMPT_S
    while True:
        # The last attempt lasts until the deadline: a shorter one could not learn what is wrong.
        is_last = deadline.remaining_s < limit_s + FIRST_ATTEMPT_S
        attempt = deadline if is_last else deadline.at_most_s(limit_s)
        try:
            return ask(Admin(config), attempt)
        except BrokerUnreachableError:
            if not backoff.wait():
                raise
        limit_s *= ATTEMPT_GROWTH


class Admin:
    """An admin client that keeps the last failure of its connections."""

    def __init__(self, config: ClientConfig) -> None:
        self._config = config
        self._failure: KafkaError | None = None
        settings = {
            "error_cb": self._remember,
            "reconnect.backoff.ms": 10,
            "statistics.interval.ms": 0,
            "log_level": 0,
        }
        self.client = AdminClient(config.librdkafka(**settings))

    def result(self, future: Any, to: str, deadline: Deadline) -> Any:
        """The future's value. A refusal raises KafkaException; no answer raises SparkEosError."""
        try:
            while not future.done() and not deadline.passed:
                self.client.poll(0.01)  # reports failed connections
                if self._login_refused():
                    break
            return future.result(0)
        except KafkaException as exception:
            if exception.args[0].code() >= 0 or exception.args[0].code() in NOT_FOUND:
                raise
        except TimeoutError:
            pass
        failure, servers = self._failure, self._config.bootstrap_servers
        reason = "no answer came" if failure is None else self._config.redact(failure.str())
        raise no_answer(servers, to, reason, login_refused=self._login_refused())

    def setting(self, kind: ResourceType, name: str, key: str, deadline: Deadline) -> int | None:
        """A setting of a broker or topic. None: unknown, or this user may not describe it."""
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

    def to_error(
        self,
        exception: KafkaException,
        to: str,
        rights: str,
        *,
        topic: str | None = None,
        group_id: str | None = None,
    ) -> SparkEosError:
        """The error for a refused request that needs these rights."""
        error, servers = exception.args[0], self._config.bootstrap_servers
        request = Request(servers=servers, to=to, rights=rights, topic=topic, group_id=group_id)
        said = self._config.redact(error.str())
        return to_error(error.code(), said, request, retriable=error.retriable())

    def _login_refused(self) -> bool:
        return self._failure is not None and self._failure.code() == KafkaError._AUTHENTICATION

    def _remember(self, error: KafkaError) -> None:
        # "All brokers are down" follows every failure and says less than it.
        if error.code() != KafkaError._ALL_BROKERS_DOWN or self._failure is None:
            self._failure = error
