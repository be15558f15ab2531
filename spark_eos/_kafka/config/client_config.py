"""Every process. The user's `kafka.*` options, once, for both client libraries.

The names are librdkafka's, or the Java client's where they mean the same. A value that may be a
secret is never shown: not by `repr`, not by an error's text.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from spark_eos._kafka.config import translate
from spark_eos._kafka.config.java_names import librdkafka_names
from spark_eos.errors import Mistake, OptionError

HIDDEN: Final = "***"

_SECRET = re.compile(
    r"password|passphrase|secret|token|jaas|pem$|pem\.|private\.key|credential|oauthbearer\.config"
)
_SERVER = re.compile(r"(?:[A-Za-z_]+://)?(?:\[[0-9A-Fa-f:.%]+\]|[^\s:,\[\]/]+)(?::(?P<port>\d+))?")
_LAST_PORT: Final = 65535
# A mistyped name must stay an error. A producer's default is true: to ask a broker about a missing
# topic would create the topic, and the second attempt would write into it.
_FIXED: Final[Mapping[str, Any]] = {"allow.auto.create.topics": False}


def is_secret(name: str) -> bool:
    """Whether the value of the client setting `name` must never be shown."""
    return _SECRET.search(name) is not None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ClientConfig:
    """Settings of a Kafka client: sorted pairs, so that it can key a cache."""

    pairs: tuple[tuple[str, str], ...]

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> "ClientConfig":
        """From options whose `kafka.` prefix was removed. Raises for what cannot be meant, all at
        once.
        """
        settings = {name.lower(): str(value) for name, value in options.items()}
        if "metadata.broker.list" in settings:
            settings.setdefault("bootstrap.servers", settings.pop("metadata.broker.list"))
        mistakes = _server_mistakes(settings.get("bootstrap.servers", ""))
        try:
            settings = librdkafka_names(settings)
        except OptionError as error:
            mistakes += error.mistakes
        if mistakes:
            raise OptionError.of(mistakes)
        return cls(pairs=tuple(sorted(settings.items())))

    @property
    def bootstrap_servers(self) -> str:
        """The servers as given, for clients and for texts."""
        return dict(self.pairs)["bootstrap.servers"]

    def get(self, name: str) -> str | None:
        """The value of one setting, if it was given."""
        return dict(self.pairs).get(name)

    def librdkafka(self, **overrides: Any) -> dict[str, Any]:
        """For a confluent client: `config.librdkafka(**{"enable.idempotence": True})`.

        Every client of the project gets its settings here, so no client can create a topic.
        """
        return {**dict(self.pairs), **overrides, **_FIXED}

    def kafka_python(self) -> dict[str, Any]:
        """The same connection in kafka-python's names; raise for what it cannot do."""
        return translate.kafka_python(dict(self.pairs))

    def redact(self, text: str) -> str:
        """`text` without any of the secrets, for texts that a library made."""
        secrets = sorted((v for k, v in self.pairs if is_secret(k) and v), key=len, reverse=True)
        for secret in secrets:
            text = text.replace(secret, HIDDEN)
        return text

    def __repr__(self) -> str:
        shown = (f"{k}={HIDDEN if is_secret(k) else repr(v)}" for k, v in self.pairs)
        return f"ClientConfig({', '.join(shown)})"


def check_librdkafka(config: ClientConfig, consumer: Mapping[str, Any] | None = None) -> None:
    """Raise OptionError for a name or value that librdkafka refuses, with its reason.

    A producer and a consumer are made and dropped: they take 0.3 and 2 ms, connect to nothing and
    leave no thread. `consumer` is what a consumer gets beside the user's settings.
    """
    for refusal, beside in ((_producer_refusal, {}), (_consumer_refusal, consumer or {})):
        reason = refusal(config.librdkafka(**beside))
        if reason is None:
            continue
        # librdkafka may name an alias (linger.ms is queue.buffering.max.ms), or nothing at all.
        named = [name for name, _ in config.pairs if _names(reason, name)]
        alone = [name for name, value in config.pairs if refusal({name: value}) == reason]
        name = next(iter([*named, *alone]), "*")
        raise OptionError(f"option kafka.{name}: {config.redact(reason)}")


def _names(reason: str, name: str) -> bool:
    return re.search(rf"(?<![\w.]){re.escape(name)}(?![\w.])", reason) is not None


def _producer_refusal(settings: Mapping[str, Any]) -> str | None:
    from confluent_kafka import Producer

    return _refusal(Producer, settings)


def _consumer_refusal(settings: Mapping[str, Any]) -> str | None:
    from confluent_kafka import Consumer

    # It needs a group, which it never joins.
    return _refusal(lambda given: Consumer(given).close(), {"group.id": "check", **settings})


def _refusal(make: Callable[[dict[str, Any]], object], settings: Mapping[str, Any]) -> str | None:
    from confluent_kafka import KafkaException

    # Without servers: librdkafka takes any text for them, and dropping the client would wait for
    # their names to be looked up.
    checked = {name: value for name, value in settings.items() if name != "bootstrap.servers"}
    try:
        make({**checked, "log_level": 0})
    except KafkaException as error:
        return str(error.args[0].str())
    return None


def _server_mistakes(servers: str) -> list[Mistake]:
    option = "kafka.bootstrap.servers"
    if not servers.strip():
        return [Mistake(option, f"option {option} is missing: give host:port, ...")]
    if "@" in servers:
        text = "host:port is accepted. A login is given with kafka.sasl.username and"
        return [Mistake(option, f"option {option} holds '@': {text} kafka.sasl.password")]
    found = []
    for server in map(str.strip, servers.split(",")):
        match = _SERVER.fullmatch(server)
        if match is None or not 0 < int(match["port"] or 1) <= _LAST_PORT:
            found.append(Mistake(option, f"option {option}: '{server}' is not host:port"))
    return found
