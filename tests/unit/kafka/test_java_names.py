"""The Java client's names: translated where librdkafka has the same, else refused with a hint."""

from __future__ import annotations

import pytest

from spark_eos._kafka.config.client_config import ClientConfig, check_librdkafka
from spark_eos._kafka.config.java_names import REFUSED, RENAMED, librdkafka_names
from spark_eos.errors import OptionError

SERVERS = {"bootstrap.servers": "a:9092"}
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_what_librdkafka_has_not_is_refused_with_a_hint(name: str) -> None:
    with pytest.raises(OptionError, match=f"kafka.{name} ") as caught:
        ClientConfig.from_options({**SERVERS, name: "hunter2"})
    assert REFUSED[name] in str(caught.value)
    assert "hunter2" not in str(caught.value)
    with pytest.raises(OptionError, match=name):
        check_librdkafka(ClientConfig(pairs=(*SERVERS.items(), (name, "hunter2"))))


@pytest.mark.parametrize("name", sorted(RENAMED))
def test_what_has_another_name_gets_it(name: str) -> None:
    assert librdkafka_names({name: "4096"}) == {RENAMED[name]: "4096"}
    with pytest.raises(OptionError, match=f"kafka.{name} and kafka.{RENAMED[name]}"):
        librdkafka_names({name: "1", RENAMED[name]: "2"})


def test_renamed_sizes_are_taken_by_librdkafka() -> None:
    given = {n: "100000" for n in RENAMED if not n.startswith("ssl")} | {"fetch.max.wait.ms": "9"}
    check_librdkafka(ClientConfig.from_options({**SERVERS, **given}))


@pytest.mark.parametrize(
    ("jaas", "user", "password"),
    [
        (f'{PLAIN} required username="ann" password="p;w d";', "ann", "p;w d"),
        (f'{SCRAM} required\n  username="ann"\n  password="a\\"b\\\\c"\n;', "ann", 'a"b\\c'),
        (f"kafkashaded.{PLAIN} required username='ann' password='x'", "ann", "x"),
        (f"{PLAIN} required username=ann password=x extra=1 ;", "ann", "x"),
    ],
)
def test_login_is_taken_from_the_jaas_config(jaas: str, user: str, password: str) -> None:
    config = ClientConfig.from_options(
        {
            **SERVERS,
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": jaas,
        }
    )
    assert config.get("sasl.username") == user
    assert config.get("sasl.password") == password
    assert config.get("sasl.jaas.config") is None
    assert password not in repr(config)
    check_librdkafka(config)


@pytest.mark.parametrize(
    ("jaas", "reason"),
    [
        ("", "are supported"),
        ("com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true;", "are supported"),
        (f'{PLAIN} optional username="ann" password="hunter2";', "are supported"),
        (f'{PLAIN} required password="hunter2";', "has no username"),
        (f'{PLAIN} required username="hunter2";', "has no password"),
    ],
)
def test_other_logins_are_refused_without_showing_them(jaas: str, reason: str) -> None:
    with pytest.raises(OptionError, match=reason) as caught:
        librdkafka_names({"sasl.jaas.config": jaas})
    assert "hunter2" not in str(caught.value)


def test_pem_stores_are_files_of_librdkafka() -> None:
    assert librdkafka_names({"ssl.truststore.type": "pem", "ssl.truststore.location": "/ca"}) == {
        "ssl.ca.location": "/ca"
    }
    assert librdkafka_names({"ssl.keystore.type": "PEM", "ssl.keystore.location": "/me"}) == {
        "ssl.certificate.location": "/me",
        "ssl.key.location": "/me",
    }


def test_pkcs12_keystore_is_kept() -> None:
    given = {"ssl.keystore.location": "/me.p12", "ssl.keystore.password": "x"}
    assert librdkafka_names(given | {"ssl.keystore.type": "PKCS12"}) == given


@pytest.mark.parametrize(
    "given",
    [
        {"ssl.truststore.location": "/ca.jks"},
        {"ssl.truststore.location": "/ca.p12", "ssl.truststore.type": "PKCS12"},
        {"ssl.keystore.location": "/me.jks", "ssl.keystore.type": "JKS"},
    ],
)
def test_java_stores_are_refused_with_a_hint(given: dict[str, str]) -> None:
    with pytest.raises(OptionError, match="PEM file"):
        librdkafka_names(given)


def test_no_host_name_check_is_said_in_librdkafkas_word() -> None:
    found = librdkafka_names({"ssl.endpoint.identification.algorithm": ""})
    assert found == {"ssl.endpoint.identification.algorithm": "none"}
