"""librdkafka's connection settings in kafka-python's names: followed, or refused by name."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from spark_eos._kafka.config.client_config import ClientConfig
from spark_eos.errors import OptionError

SERVERS = {"bootstrap.servers": "SSL://a:1, b:2"}
LOGIN = {"sasl.username": "u", "sasl.password": "hunter2"}


def translated(**settings: str) -> dict[str, object]:
    named = {name.replace("_", "."): value for name, value in settings.items()}
    return ClientConfig.from_options({**SERVERS, **named}).kafka_python()


def test_plain_connection_and_client_id() -> None:
    assert translated(client_id="me", linger_ms="5", compression_type="zstd") == {
        "bootstrap_servers": ["a:1", "b:2"],
        "client_id": "me",
        "security_protocol": "PLAINTEXT",
    }


@pytest.mark.parametrize("name", ["sasl.mechanism", "sasl.mechanisms"])
@pytest.mark.parametrize("mechanism", ["PLAIN", "scram-sha-256", "SCRAM-SHA-512"])
def test_login(name: str, mechanism: str) -> None:
    settings = {"security.protocol": "sasl_plaintext", name: mechanism, **LOGIN}
    assert ClientConfig.from_options({**SERVERS, **settings}).kafka_python() == {
        "bootstrap_servers": ["a:1", "b:2"],
        "client_id": "spark-eos",
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": mechanism.upper(),
        "sasl_plain_username": "u",
        "sasl_plain_password": "hunter2",
    }


def context(**settings: str) -> ssl.SSLContext:
    made = translated(security_protocol="ssl", **settings)["ssl_context"]
    assert isinstance(made, ssl.SSLContext)
    return made


def test_certificates_are_verified_unless_that_was_switched_off() -> None:
    default = context()
    assert default.check_hostname
    assert default.verify_mode is ssl.CERT_REQUIRED
    assert default.minimum_version is ssl.TLSVersion.TLSv1_2
    no_names = context(ssl_endpoint_identification_algorithm="none")
    assert not no_names.check_hostname
    assert no_names.verify_mode is ssl.CERT_REQUIRED
    nothing = context(enable_ssl_certificate_verification="false")
    assert not nothing.check_hostname
    assert nothing.verify_mode is ssl.CERT_NONE


@pytest.mark.parametrize("security", ["SASL_SSL", "sasl_ssl"])
def test_login_over_tls_has_both(security: str) -> None:
    settings = {"security.protocol": security, "sasl.mechanism": "PLAIN", **LOGIN}
    made = ClientConfig.from_options({**SERVERS, **settings}).kafka_python()
    assert made["security_protocol"] == "SASL_SSL"
    assert "ssl_context" in made
    assert "sasl_plain_password" in made


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"security.protocol": "bogus"}, r"kafka\.security\.protocol: 'BOGUS'"),
        ({"security.protocol": "SASL_SSL"}, r"kafka\.sasl\.mechanism: 'GSSAPI'.*PLAIN"),
        (
            {"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER"},
            r"kafka\.sasl\.mechanism: 'OAUTHBEARER'.*SCRAM-SHA-512",
        ),
        (
            {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.username": "u"},
            r"kafka\.sasl\.password is missing",
        ),
        ({"sasl.kerberos.keytab": "/k"}, r"kafka\.sasl\.kerberos\.keytab is not supported"),
        ({"sasl.oauthbearer.method": "oidc"}, r"kafka\.sasl\.oauthbearer\.method is not"),
        ({"ssl.key.pem": "hunter2"}, r"kafka\.ssl\.key\.pem.*ssl\.key\.location"),
        ({"ssl.keystore.location": "/p12"}, r"kafka\.ssl\.keystore\.location.*certificate"),
        ({"security.protocol": "ssl", "ssl.ca.location": "/no/ca"}, r"kafka\.ssl\.ca\.location"),
        (
            {
                "security.protocol": "ssl",
                "ssl.certificate.location": "/no/cert",
                "ssl.key.password": "hunter2",
            },
            r"kafka\.ssl\.certificate\.location",
        ),
    ],
)
def test_what_cannot_be_followed_is_refused_by_name(settings: dict[str, str], named: str) -> None:
    config = ClientConfig.from_options({**SERVERS, **LOGIN, **settings})
    if "sasl.username" in settings:
        config = ClientConfig.from_options({**SERVERS, **settings})
    with pytest.raises(OptionError, match=named) as caught:
        config.kafka_python()
    assert "hunter2" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_folder_of_authorities_is_taken(tmp_path: Path) -> None:
    assert context(ssl_ca_location=str(tmp_path)).verify_mode is ssl.CERT_REQUIRED
