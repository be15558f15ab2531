"""Driver. Connection settings from librdkafka's names into kafka-python's.

Only what makes a connection is translated (servers, TLS, SASL): the rest tunes librdkafka. A
security setting that kafka-python cannot follow is refused, never dropped: two clients of one job
must not differ in whom they trust or who they say they are.
"""

import ssl
from collections.abc import Mapping
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
_INSTEAD: Mapping[str, str] = {
    "ssl.certificate.pem": _PEM_FILES,
    "ssl.key.pem": _PEM_FILES,
    "ssl.keystore.location": _PEM_FILES,
    "ssl.keystore.password": _PEM_FILES,
}
_SECURITY = ("sasl.", "ssl.", "security.", "enable.ssl.", "enable.sasl.")


def kafka_python(settings: Mapping[str, str]) -> dict[str, Any]:
    """Keyword arguments for kafka-python's connection manager."""
    for name in settings:
        if name.startswith(_SECURITY) and name not in _FOLLOWED:
            hint = _INSTEAD.get(name, f"use kafka.sasl.mechanism {', '.join(MECHANISMS)}, or TLS")
            raise OptionError(f"option kafka.{name} is not supported: {hint}")
    servers = [server.strip() for server in settings["bootstrap.servers"].split(",")]
    result: dict[str, Any] = {
        "bootstrap_servers": [server.rpartition("://")[2] for server in servers],
        "client_id": settings.get("client.id", "spark-eos"),
        "security_protocol": _protocol(settings),
    }
    if result["security_protocol"].startswith("SASL_"):
        result |= _sasl(settings)
    if result["security_protocol"].endswith("SSL"):
        result["ssl_context"] = _ssl_context(settings)
    return result


def _protocol(settings: Mapping[str, str]) -> str:
    protocol = settings.get("security.protocol", "PLAINTEXT").upper()
    if protocol not in PROTOCOLS:
        raise OptionError(
            f"option kafka.security.protocol: '{protocol}' is not one of {', '.join(PROTOCOLS)}"
        )
    return protocol


def _sasl(settings: Mapping[str, str]) -> dict[str, Any]:
    # librdkafka's own default is GSSAPI, which its wheel for Python does not hold.
    mechanism = settings.get("sasl.mechanism", settings.get("sasl.mechanisms", "GSSAPI")).upper()
    if mechanism not in MECHANISMS:
        raise OptionError(
            f"option kafka.sasl.mechanism: '{mechanism}' is not supported, "
            f"use one of {', '.join(MECHANISMS)}"
        )
    for name in ("sasl.username", "sasl.password"):
        if name not in settings:
            raise OptionError(f"option kafka.{name} is missing: {mechanism} needs it")
    return {
        "sasl_mechanism": mechanism,
        "sasl_plain_username": settings["sasl.username"],
        "sasl_plain_password": settings["sasl.password"],
    }


def _ssl_context(settings: Mapping[str, str]) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    algorithm = settings.get("ssl.endpoint.identification.algorithm", "https").lower()
    context.check_hostname = algorithm not in ("none", "")
    if settings.get("enable.ssl.certificate.verification", "true").lower() in ("false", "f", "0"):
        context.check_hostname = False
        # The user asked for it, by a name that says what it does; librdkafka does the same.
        context.verify_mode = ssl.CERT_NONE
    try:
        _load_trusted(context, settings)
    except (OSError, ValueError) as error:
        raise OptionError(f"option kafka.ssl.ca.location: {_reason(error)}") from None
    try:
        _load_own(context, settings)
    except (OSError, ValueError) as error:
        raise OptionError(
            f"options kafka.ssl.certificate.location, kafka.ssl.key.location and "
            f"kafka.ssl.key.password do not fit together: {_reason(error)}"
        ) from None
    return context


def _load_trusted(context: ssl.SSLContext, settings: Mapping[str, str]) -> None:
    if "ssl.ca.pem" in settings:
        context.load_verify_locations(cadata=settings["ssl.ca.pem"])
    elif settings.get("ssl.ca.location", "probe") != "probe":
        place = settings["ssl.ca.location"]
        folder = Path(place).is_dir()
        context.load_verify_locations(
            cafile=None if folder else place, capath=place if folder else None
        )
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
            # An empty password stands for none; without this OpenSSL would ask at the terminal.
            settings.get("ssl.key.password", ""),
        )


def _reason(error: Exception) -> str:
    """OpenSSL's or the system's reason, which names no value."""
    return getattr(error, "reason", None) or getattr(error, "strerror", None) or "not readable"
