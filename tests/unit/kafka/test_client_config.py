"""Options into client settings: names, refusals, and no secret anywhere."""

from __future__ import annotations

import pickle
import re
import subprocess
import sys

import pytest

from spark_eos._kafka.config.client_config import (
    ClientConfig,
    check_librdkafka,
    is_secret,
)
from spark_eos._kafka.consume.consumer import ConsumerPool, ConsumerSettings
from spark_eos._protocol.offsets.isolation import IsolationLevel
from spark_eos.errors import OptionError

SERVERS = {"bootstrap.servers": "a:9092,b:9092"}
SECRETS = [
    "sasl.password",
    "ssl.key.password",
    "ssl.keystore.password",
    "ssl.key.pem",
    "ssl.certificate.pem",
    "ssl.ca.pem",
    "sasl.jaas.config",
    "sasl.oauthbearer.config",
    "sasl.oauthbearer.client.secret",
    "sasl.oauthbearer.client.credentials.client.secret",
    "sasl.oauthbearer.assertion.private.key.passphrase",
    "sasl.oauthbearer.assertion.private.key.pem",
    "some.token",
]


@pytest.mark.parametrize("name", SECRETS)
def test_secret_is_in_no_text(name: str) -> None:
    config = ClientConfig(pairs=(("bootstrap.servers", "a:1"), (name, "hunter2")))
    assert is_secret(name)
    for text in (repr(config), str(config), f"{config}", f"{[config]}"):
        assert "hunter2" not in text
        assert "a:1" in text
    assert config.redact("login as x with hunter2 failed") == "login as x with *** failed"
    assert config.librdkafka()[name] == "hunter2"


@pytest.mark.parametrize("name", ["bootstrap.servers", "sasl.username", "ssl.ca.location"])
def test_what_is_no_secret_is_shown(name: str) -> None:
    assert not is_secret(name)


def test_value_is_hashable_equal_and_travels() -> None:
    one = ClientConfig.from_options({**SERVERS, "linger.ms": "5", "acks": "all"})
    two = ClientConfig.from_options({"acks": "all", "linger.ms": "5", **SERVERS})
    assert {one: 1}[two] == 1
    assert pickle.loads(pickle.dumps(one)) == one
    assert one.bootstrap_servers == "a:9092,b:9092"
    assert one.get("linger.ms") == "5"
    assert one.get("nothing") is None


def test_overrides_win() -> None:
    config = ClientConfig.from_options({**SERVERS, "acks": "1"})
    assert config.librdkafka(acks="all")["acks"] == "all"


def test_no_client_may_create_a_topic_whatever_it_is_given() -> None:
    name = "allow.auto.create.topics"
    config = ClientConfig.from_options({**SERVERS, name: "true"})
    for settings in (config.librdkafka(), config.librdkafka(**{name: True})):
        assert settings == {**SERVERS, name: False}


@pytest.mark.parametrize(
    "servers", ["", "  ", "a:b", "a:0", "a:70000", "a b:1", "a:1,", "http://a:1/x", "a:1:2"]
)
def test_servers_must_be_addresses(servers: str) -> None:
    with pytest.raises(OptionError, match=r"kafka\.bootstrap\.servers"):
        ClientConfig.from_options({"bootstrap.servers": servers})


@pytest.mark.parametrize(
    "servers", ["a", "a:1, b:2", "[::1]:9092", "PLAINTEXT://a:1", "10.0.0.1:1"]
)
def test_usual_addresses_are_taken(servers: str) -> None:
    assert ClientConfig.from_options({"bootstrap.servers": servers}).bootstrap_servers == servers


def test_missing_servers_are_named() -> None:
    with pytest.raises(OptionError, match=r"kafka\.bootstrap\.servers is missing"):
        ClientConfig.from_options({"acks": "all"})


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("no.such.name", "1", r"kafka\.no\.such\.name: No such configuration property"),
        ("linger.ms", "abc", r"kafka\.linger\.ms: Invalid value"),
        ("security.protocol", "bogus", r"kafka\.security\.protocol: Invalid value"),
        ("enable.idempotence", "maybe", r"kafka\.enable\.idempotence: Expected bool"),
    ],
)
def test_what_librdkafka_refuses_is_named(name: str, value: str, reason: str) -> None:
    with pytest.raises(OptionError, match=reason):
        check_librdkafka(ClientConfig.from_options({**SERVERS, name: value}))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max.poll.interval.ms", "30000"),
        ("session.timeout.ms", "600000"),
        ("fetch.min.bytes", "200000000"),
        ("fetch.max.bytes", "100"),
    ],
)
def test_what_only_a_consumer_refuses_is_named(name: str, value: str) -> None:
    """A producer takes it, and a task would fail with it."""
    with pytest.raises(OptionError, match=rf"option kafka\.{re.escape(name)}: .*{name}"):
        check_librdkafka(ClientConfig.from_options({**SERVERS, name: value}))


@pytest.mark.parametrize("name", ["reconnect.backoff.ms", "reconnect.backoff.max.ms"])
@pytest.mark.parametrize("value", ["1", "9000"])
def test_settings_of_the_source_do_not_contradict_those_of_the_user(name: str, value: str) -> None:
    config = ClientConfig.from_options({**SERVERS, name: value})
    settings = ConsumerSettings(isolation_level=IsolationLevel.READ_COMMITTED, group_id="g")
    if (name, value) == ("reconnect.backoff.max.ms", "1"):  # below librdkafka's own other half
        with pytest.raises(OptionError, match=r"kafka\.reconnect\.backoff\.max\.ms"):
            ConsumerPool(config).check_config(settings)
    else:
        ConsumerPool(config).check_config(settings)


def test_what_contradicts_the_settings_of_the_source_is_named() -> None:
    config = ClientConfig.from_options({**SERVERS, "max.poll.interval.ms": "30000"})
    settings = ConsumerSettings(isolation_level=IsolationLevel.READ_COMMITTED, group_id="g")
    with pytest.raises(OptionError, match=r"option kafka\.max\.poll\.interval\.ms: "):
        ConsumerPool(config).check_config(settings)


def test_login_in_the_address_of_a_server_is_not_shown() -> None:
    with pytest.raises(OptionError, match=r"kafka\.bootstrap\.servers.*host:port") as caught:
        ClientConfig.from_options({"bootstrap.servers": "user:sekret@h:9092"})
    assert "sekret" not in str(caught.value)
    assert "sasl.username" in str(caught.value)


def test_reason_of_librdkafka_is_without_secrets() -> None:
    config = ClientConfig.from_options(
        {**SERVERS, "sasl.password": "bogus", "security.protocol": "bogus"}
    )
    with pytest.raises(OptionError) as caught:
        check_librdkafka(config)
    assert "bogus" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_check_leaves_no_thread_behind() -> None:
    """In a process of its own: others of this one may start threads at any time.

    A thread that was waited for is listed for a moment longer.
    """
    code = """
import os, time
from spark_eos._kafka.config.client_config import ClientConfig, check_librdkafka
config = ClientConfig.from_options({"bootstrap.servers": "broker:9092"})
before = len(os.listdir("/proc/self/task"))
for _ in range(20):
    check_librdkafka(config)
deadline = time.monotonic() + 30
while len(os.listdir("/proc/self/task")) > before and time.monotonic() < deadline:
    time.sleep(0.01)
print(before, len(os.listdir("/proc/self/task")))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    before, after = done.stdout.split()
    assert before == after
