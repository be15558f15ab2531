"""Driver. Connection settings (servers, TLS, SASL) from librdkafka's names into kafka-python's.

A security setting that kafka-python does not support is refused, never dropped: the two clients of
a job must trust the same brokers and use the same login.
"""

import ssl
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from spark_eos.errors import OptionError

MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")

_PEM_FILES = "use kafka.ssl.certificate.location and kafka.ssl.key.location (PEM files)"
_FOLLOWED = frozenset(
    {
        "security.protocol",
        "sasl.mechanism",
        "sasl.mechanisms",
        "sasl.username",
        "sasl.password",
        "ssl.ca.location",
        "ssl.ca.pem",
        "ssl.certificate.location",
        "ssl.key.location",
        "ssl.key.password",
        "ssl.crl.location",
        "ssl.cipher.suites",
        "ssl.endpoint.identification.algorithm",
        "enable.ssl.certificate.verification",
    }
)
_INSTEAD: Mapping[str, str] = dict.fromkeys(
    ("ssl.certificate.pem", "ssl.key.pem", "ssl.keystore.location", "ssl.keystore.password"),
    _PEM_FILES,
)
_SECURITY = ("sasl.", "ssl.", "security.", "enable.ssl.", "enable.sasl.")


def kafka_python(settings: Mapping[str, str]) -> dict[str, Any]:
    """Keyword arguments for kafka-python's connection manager."""
    for name in settings:
        if name.startswith(_SECURITY) and name not in _FOLLOWED:
            hint = _INSTEAD.get(name, f"use kafka.sasl.mechanism {', '.join(MECHANISMS)}, or TLS")
            raise OptionError(
                "option {option} is not supported: {hint}", option=f"kafka.{name}", hint=hint
            )
    protocol = settings.get("security.protocol", "PLAINTEXT")
    protocol = _accepted("kafka.security.protocol", protocol, PROTOCOLS)
    servers = [server.strip() for server in settings["bootstrap.servers"].split(",")]
    result: dict[str, Any] = {
        "bootstrap_servers": [server.rpartition("://")[2] for server in servers],
        "client_id": settings.get("client.id", "spark-eos"),
        "security_protocol": protocol,
    }
    if protocol.startswith("SASL_"):
        result |= _sasl(settings)
    if protocol.endswith("SSL"):
        result["ssl_context"] = _ssl_context(settings)
    return result


def _sasl(settings: Mapping[str, str]) -> dict[str, Any]:
    # librdkafka's default is GSSAPI, which its wheel for Python does not contain.
    mechanism = settings.get("sasl.mechanism", settings.get("sasl.mechanisms", "GSSAPI"))
    mechanism = _accepted("kafka.sasl.mechanism", mechanism, MECHANISMS)
    for name in ("sasl.username", "sasl.password"):
        if name not in settings:
            raise OptionError(
                "option {option} is missing: {mechanism} needs it",
                option=f"kafka.{name}",
                mechanism=mechanism,
            )
    return {
        "sasl_mechanism": mechanism,
        "sasl_plain_username": settings["sasl.username"],
        "sasl_plain_password": settings["sasl.password"],
    }


def _accepted(option: str, value: str, accepted: Sequence[str]) -> str:
    """The value in upper case. Raises if it is not accepted."""
    if value.upper() not in accepted:
        raise OptionError(
            "option {option}: '{value}' is not supported. Use one of {accepted}",
            option=option,
            value=value.upper(),
            accepted=", ".join(accepted),
        )
    return value.upper()


def _ssl_context(settings: Mapping[str, str]) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    algorithm = settings.get("ssl.endpoint.identification.algorithm", "https").lower()
    context.check_hostname = algorithm not in ("none", "")
    if settings.get("enable.ssl.certificate.verification", "true").lower() in ("false", "f", "0"):
        context.check_hostname = False
        # The user has switched verification off, and librdkafka does the same.
        context.verify_mode = ssl.CERT_NONE
    try:
        _load_trusted(context, settings)
    except (OSError, ValueError) as error:
        raise OptionError(
            "option {option}: {reason}", option="kafka.ssl.ca.location", reason=_reason(error)
        ) from None
    try:
        _load_own(context, settings)
    except (OSError, ValueError) as error:
        raise OptionError(
            "options kafka.ssl.certificate.location, kafka.ssl.key.location and"
            " kafka.ssl.key.password do not fit together: {reason}",
            reason=_reason(error),
        ) from None
    return context


def _load_trusted(context: ssl.SSLContext, settings: Mapping[str, str]) -> None:
    if "ssl.ca.pem" in settings:
        context.load_verify_locations(cadata=settings["ssl.ca.pem"])
    elif settings.get("ssl.ca.location", "probe") != "probe":
        place = settings["ssl.ca.location"]
        context.load_verify_locations(**{"capath" if Path(place).is_dir() else "cafile": place})
    else:
        context.load_default_certs()
    if "ssl.crl.location" in settings:
        context.load_verify_locations(settings["ssl.crl.location"])
        context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF


def _load_own(context: ssl.SSLContext, settings: Mapping[str, str]) -> None:
    if "ssl.cipher.suites" in settings:
        context.set_ciphers(settings["ssl.cipher.suites"])
    if "ssl.certificate.location" in settings:
        context.load_cert_chain(
            settings["ssl.certificate.location"],
            settings.get("ssl.key.location"),
            # An empty password means none. Without it OpenSSL would ask at the terminal.
            settings.get("ssl.key.password", ""),
        )


def _reason(error: Exception) -> str:
    """The reason of OpenSSL or the system, which contains no value."""
    return getattr(error, "reason", None) or getattr(error, "strerror", None) or "not readable"
