"""Every process. The Java client's names, which users of Spark's own connector bring.

librdkafka's name replaces each, or an error says what to use. No value is shown: it may be secret.
"""

import re
from collections.abc import Mapping
from typing import Final

from spark_eos.errors import Mistake, OptionError

RENAMED: Final[Mapping[str, str]] = {
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "send.buffer.bytes": "socket.send.buffer.bytes",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "ssl.truststore.certificates": "ssl.ca.pem",
    "ssl.keystore.key": "ssl.key.pem",
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
}

_COLUMNS = "key and value are columns of the data frame, binary or string"
_LOGIN = "use kafka.sasl.mechanism PLAIN or SCRAM-SHA-512 with a user name and a password"
_PEM_FILE = "use kafka.ssl.ca.location with a PEM file"
_PEM_FILES = "use kafka.ssl.certificate.location and kafka.ssl.key.location with PEM files"

REFUSED: Final[Mapping[str, str]] = {
    "key.serializer": _COLUMNS,
    "value.serializer": _COLUMNS,
    "key.deserializer": _COLUMNS,
    "value.deserializer": _COLUMNS,
    "partitioner.class": "use kafka.partitioner, or a partition column",
    "interceptor.classes": "there is no replacement",
    "metric.reporters": "there is no replacement; the log has a row for each transaction",
    "max.poll.records": "records are fetched by bytes, see kafka.fetch.message.max.bytes;"
    " for smaller micro-batches use maxOffsetsPerTrigger",
    "max.request.size": "use kafka.message.max.bytes",
    "buffer.memory": "use kafka.queue.buffering.max.kbytes",
    "max.block.ms": "use apiTimeoutMs",
    "default.api.timeout.ms": "use apiTimeoutMs",
    "metadata.max.idle.ms": "use kafka.metadata.max.age.ms",
    "exclude.internal.topics": "subscribePattern never matches the brokers' own topics",
    "sasl.client.callback.handler.class": _LOGIN,
    "sasl.login.callback.handler.class": _LOGIN,
    "sasl.login.class": _LOGIN,
    "ssl.truststore.password": f"{_PEM_FILE}, which has no password",
    "ssl.enabled.protocols": "TLS 1.2 and newer are used",
    "ssl.protocol": "TLS 1.2 and newer are used",
}

_JAAS = re.compile(r"\s*(?P<module>[\w.$]+)\s+required\s+(?P<options>.*?);?\s*", re.DOTALL)
_JAAS_OPTION = re.compile(r"([\w.]+)\s*=\s*(?:\"((?:[^\"\\]|\\.)*)\"|'([^']*)'|([^\s;]+))")
_LOGIN_MODULES: Final = ("PlainLoginModule", "ScramLoginModule")


def librdkafka_names(settings: Mapping[str, str]) -> dict[str, str]:
    """The same settings by librdkafka's names. Raises all mistakes together."""
    refused = sorted(settings.keys() & REFUSED.keys())
    mistakes = [_mistake(name, REFUSED[name]) for name in refused]
    result = {name: value for name, value in settings.items() if name not in REFUSED}
    for name in sorted(settings.keys() & RENAMED.keys()):
        if RENAMED[name] in settings:
            text = f"options kafka.{name} and kafka.{RENAMED[name]} are the same: give one"
            mistakes.append(Mistake(f"kafka.{name}", text))
        result[RENAMED[name]] = result.pop(name)
    for translate in (_truststore, _keystore, _login):
        mistakes += translate(result)
    if mistakes:
        raise OptionError.of(mistakes)
    if result.get("ssl.endpoint.identification.algorithm") == "":  # the Java client's "none"
        result["ssl.endpoint.identification.algorithm"] = "none"
    return result


def _truststore(settings: dict[str, str]) -> list[Mistake]:
    kind = settings.pop("ssl.truststore.type", "JKS").upper()
    location = settings.pop("ssl.truststore.location", None)
    if location is not None and kind != "PEM":
        return [_mistake("ssl.truststore.location", _PEM_FILE)]
    if location is not None:
        settings["ssl.ca.location"] = location
    return []


def _keystore(settings: dict[str, str]) -> list[Mistake]:
    kind = settings.pop("ssl.keystore.type", "PKCS12").upper()
    if "ssl.keystore.location" not in settings or kind == "PKCS12":  # librdkafka takes PKCS#12
        return []
    if kind != "PEM":
        return [_mistake("ssl.keystore.type", _PEM_FILES)]
    location = settings.pop("ssl.keystore.location")
    settings["ssl.certificate.location"] = settings["ssl.key.location"] = location
    return []


def _login(settings: dict[str, str]) -> list[Mistake]:
    """Move the user and the password out of a JAAS configuration."""
    jaas = settings.pop("sasl.jaas.config", None)
    if jaas is None:
        return []
    name = "kafka.sasl.jaas.config"
    match = _JAAS.fullmatch(jaas)
    if match is None or match["module"].rpartition(".")[2] not in _LOGIN_MODULES:
        text = f"option {name}: only {' and '.join(_LOGIN_MODULES)} are supported. Use"
        return [Mistake(name, f"{text} kafka.sasl.username and kafka.sasl.password")]
    options = {
        name: re.sub(r"\\(.)", r"\1", quoted) or single or plain
        for name, quoted, single, plain in _JAAS_OPTION.findall(match["options"])
    }
    missing = [name for name in ("username", "password") if name not in options]
    if missing:
        return [Mistake(name, f"option {name} has no {' and no '.join(missing)}")]
    settings |= {f"sasl.{key}": options[key] for key in ("username", "password")}
    return []


def _mistake(name: str, instead: str) -> Mistake:
    text = f"option kafka.{name} is a setting of the Java client, not of librdkafka: {instead}"
    return Mistake(f"kafka.{name}", text)
