"""What a job asks its cluster before it writes, on a real broker."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka.admin import AdminClient

from spark_eos._deadline import Deadline
from spark_eos._kafka.admin.metadata import ClusterMetadata
from spark_eos._kafka.config.client_config import ClientConfig
from spark_eos._kafka.coordinator.client import CoordinatorClient
from spark_eos._protocol.transactions.outcome import Outcome
from spark_eos._protocol.transactions.transaction import ProducerIdentity
from spark_eos.errors import BrokerUnreachableError, OptionError
from spark_eos.testing import EmbeddedKafka
from spark_eos.testing._embedded.layout import open_layout

if TYPE_CHECKING:
    from tests.conftest import TopicFactory

PASSWORD = "s3cret-of-the-driver"


def soon(ms: float = 20_000) -> Deadline:
    return Deadline.after_ms(ms)


@pytest.fixture
def config(kafka: EmbeddedKafka) -> ClientConfig:
    return ClientConfig.from_options({"bootstrap.servers": kafka.bootstrap_servers})


def test_partitions_are_counted(topic: TopicFactory, config: ClientConfig) -> None:
    three, one = topic(3), topic()
    metadata = ClusterMetadata(config)
    assert metadata.partition_counts([three, one, three], soon()) == {three: 3, one: 1}
    assert metadata.partition_counts([], soon()) == {}


def test_missing_topic_is_named_and_not_created(tmp_path: Path) -> None:
    """On a cluster that would create it for any producer that asks."""
    with EmbeddedKafka(tmp_path, properties={"auto.create.topics.enable": "true"}) as own:
        config = ClientConfig.from_options({"bootstrap.servers": own.bootstrap_servers})
        for _ in range(2):
            with pytest.raises(OptionError, match="topic 'typo' does not exist"):
                ClusterMetadata(config).partition_counts(["typo"], soon())
        listed = AdminClient({"bootstrap.servers": own.bootstrap_servers}).list_topics(timeout=20)
        assert "typo" not in listed.topics


def test_the_limit_is_the_brokers_own(config: ClientConfig) -> None:
    assert ClusterMetadata(config).max_transaction_timeout_ms(soon()) == 900_000


@pytest.mark.parametrize(
    "ask",
    [
        lambda config, deadline: ClusterMetadata(config).partition_counts(["t"], deadline),
        lambda config, deadline: ClusterMetadata(config).max_transaction_timeout_ms(deadline),
    ],
)
def test_unreachable_servers_are_named_within_the_deadline(
    ask: Callable[[ClientConfig, Deadline], Any],
) -> None:
    away = ClientConfig.from_options({"bootstrap.servers": "127.0.0.1:1,127.0.0.1:2"})
    started = time.monotonic()
    with pytest.raises(BrokerUnreachableError, match=r"127\.0\.0\.1:1,127\.0\.0\.1:2.*refused"):
        ask(away, soon(1_000))
    assert time.monotonic() - started < 5  # room for a busy machine


@pytest.fixture(scope="module")
def login_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A broker with one more listener, which wants a name and a password."""
    folder = tmp_path_factory.mktemp("login")
    node = open_layout(folder, 1).nodes[0]
    taken = {node.port, node.controller_port}
    spare = open_layout(tmp_path_factory.mktemp("spare"), 2).nodes
    server = next(other.client for other in spare if other.port not in taken)
    module = "org.apache.kafka.common.security.plain.PlainLoginModule required"
    properties = {
        "listener.security.protocol.map": (
            "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,LOGIN:SASL_PLAINTEXT"
        ),
        "listeners": (
            f"PLAINTEXT://{node.client},CONTROLLER://127.0.0.1:{node.controller_port},"
            f"LOGIN://{server}"
        ),
        "advertised.listeners": f"PLAINTEXT://{node.client},LOGIN://{server}",
        "listener.name.login.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.login.plain.sasl.jaas.config": f'{module} user_driver="{PASSWORD}";',
    }
    with EmbeddedKafka(folder, properties=properties):
        yield server


def login(server: str, password: str) -> ClientConfig:
    return ClientConfig.from_options(
        {
            "bootstrap.servers": server,
            "security.protocol": "sasl_plaintext",
            "sasl.mechanism": "PLAIN",
            "sasl.username": "driver",
            "sasl.password": password,
        }
    )


def test_both_clients_log_in_with_the_same_options(login_server: str) -> None:
    config = login(login_server, PASSWORD)
    assert ClusterMetadata(config).max_transaction_timeout_ms(soon()) == 900_000
    client = CoordinatorClient(config)
    assert client.describe(["nobody"], soon()) == {"nobody": None}
    client.close()


def test_refused_login_is_said_at_once_and_without_the_password(login_server: str) -> None:
    wrong = login(login_server, "wr0ng-one")
    client = CoordinatorClient(wrong)
    asked: list[Callable[[], Any]] = [
        lambda: client.describe(["nobody"], soon()),
        lambda: client.list_open(soon()),
        lambda: ClusterMetadata(wrong).max_transaction_timeout_ms(soon()),
    ]
    for ask in asked:
        started = time.monotonic()
        with pytest.raises(OptionError, match="refused the login") as caught:
            ask()
        assert "wr0ng-one" not in str(caught.value)
        assert time.monotonic() - started < 5  # not the whole deadline
    identity = ProducerIdentity(transactional_id="t", producer_id=1, producer_epoch=0)
    started = time.monotonic()
    answer = client.end([identity], committed=True, deadline=soon())["t"]
    assert answer.outcome is Outcome.UNKNOWN
    assert time.monotonic() - started < 5
    client.close()
