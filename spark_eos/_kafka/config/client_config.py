"""Every process. The user's `kafka.*` options. No text shows a value that may be a secret."""

import re
from collections.abc import Mapping
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
# A producer's default is true: asking about a mistyped topic would create it, and the second
# attempt would write to it.
_FIXED: Final[Mapping[str, Any]] = {"allow.auto.create.topics": False}


def is_secret(name: str) -> bool:
    """Whether the value of this client setting must never be shown."""
    return _SECRET.search(name) is not None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ClientConfig:
    """Settings of a Kafka client, as sorted pairs: hashable."""

    pairs: tuple[tuple[str, str], ...]

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> "ClientConfig":
        """From options without their `kafka.` prefix. Raises all mistakes together."""
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
        """The servers as the user gave them, for clients and texts."""
        return dict(self.pairs)["bootstrap.servers"]

    def get(self, name: str) -> str | None:
        """The value of one setting, if the user gave it."""
        return dict(self.pairs).get(name)

    def librdkafka(self, **overrides: Any) -> dict[str, Any]:
        """The settings of a confluent client. Every client uses them, so none creates a topic."""
        return {**dict(self.pairs), **overrides, **_FIXED}

    def kafka_python(self) -> dict[str, Any]:
        """The same connection in kafka-python's names. Raises for what it does not support."""
        return translate.kafka_python(dict(self.pairs))

    def redact(self, text: str) -> str:
        """The text of a library without any of the secrets."""
        secrets = sorted((v for k, v in self.pairs if is_secret(k) and v), key=len, reverse=True)
        for secret in secrets:
            text = text.replace(secret, HIDDEN)
        return text

    def __repr__(self) -> str:
        shown = (f"{k}={HIDDEN if is_secret(k) else repr(v)}" for k, v in self.pairs)
        return f"ClientConfig({', '.join(shown)})"


def check_librdkafka(config: ClientConfig, consumer: Mapping[str, Any] | None = None) -> None:
    """Raise OptionError for a refused name or value. `consumer`: more settings of a consumer."""
    for is_consumer, further in ((False, {}), (True, consumer or {})):
        reason = _refusal(config.librdkafka(**further), is_consumer=is_consumer)
        if reason is None:
            continue
        # librdkafka may name an alias (linger.ms is queue.buffering.max.ms), or no setting.
        named = [
            n for n, _ in config.pairs if re.search(rf"(?<![\w.]){re.escape(n)}(?![\w.])", reason)
        ]
        alone = [n for n, v in config.pairs if _refusal({n: v}, is_consumer=is_consumer) == reason]
        raise OptionError(
            "option {option}: {reason}",
            option=f"kafka.{next(iter([*named, *alone]), '*')}",
            reason=config.redact(reason),
        )


def _refusal(settings: Mapping[str, Any], *, is_consumer: bool) -> str | None:
    from confluent_kafka import Consumer, KafkaException, Producer

    # A producer takes 0.3 ms and a consumer 2 ms. No servers: librdkafka accepts any text, and a
    # dropped client waits for the lookup of their names.
    checked = {n: v for n, v in settings.items() if n != "bootstrap.servers"} | {"log_level": 0}
    try:
        if is_consumer:
            Consumer({"group.id": "check", **checked}).close()  # required, but never joined
        else:
            Producer(checked)
    except KafkaException as error:
        return str(error.args[0].str())
    return None


def _server_mistakes(servers: str) -> list[Mistake]:
    option = "kafka.bootstrap.servers"
    if not servers.strip():
        return [Mistake(option, f"option {option} is missing: give host:port, ...")]
    if "@" in servers:
        text = "Give host:port, and a login with kafka.sasl.username and kafka.sasl.password"
        return [Mistake(option, f"option {option} contains '@'. {text}")]
    found = []
    for server in map(str.strip, servers.split(",")):
        match = _SERVER.fullmatch(server)
        if match is None or not 0 < int(match["port"] or 1) <= _LAST_PORT:
            found.append(Mistake(option, f"option {option}: '{server}' is not host:port"))
    return found
