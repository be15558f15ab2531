"""What is used of kafka-python beyond its public interface. A failure here names what changed."""

from __future__ import annotations

import inspect
import logging
import warnings
from typing import Any

import pytest

from spark_eos._kafka.coordinator import messages
from spark_eos._protocol.transactions.transaction import ProducerIdentity

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import errors
    from kafka.cluster import ClusterMetadata
    from kafka.future import Future
    from kafka.net.connection import KafkaConnection
    from kafka.net.inet import KafkaNetSocket
    from kafka.net.manager import KafkaConnectionManager
    from kafka.net.selector import NetworkSelector
    from kafka.net.transport import KafkaSSLTransport, KafkaTCPTransport
    from kafka.protocol.admin import DescribeTransactionsResponse, ListTransactionsResponse
    from kafka.protocol.metadata import FindCoordinatorResponse, MetadataResponse
    from kafka.protocol.producer import EndTxnResponse, InitProducerIdResponse

    from spark_eos._kafka.coordinator.connection_manager import (
        LOGIN_REFUSED,
        TUNING,
        ConnectionManager,
        own_log,
    )

SIGNATURES = {
    KafkaConnectionManager.__init__: ["net"],
    KafkaConnectionManager.bootstrap_async: ["timeout_ms"],
    KafkaConnectionManager.send: ["request", "node_id", "request_timeout_ms"],
    KafkaConnectionManager.get_connection: ["node_id"],
    KafkaConnectionManager.least_loaded_node: [],
    KafkaConnectionManager.close: ["node_id"],
    NetworkSelector.poll: ["timeout_ms", "future"],
    NetworkSelector.call_soon_with_future: ["coro"],
    NetworkSelector.close: [],
    ClusterMetadata.refresh_metadata: [],
    ClusterMetadata.brokers: [],
    Future.add_both: ["f"],
    Future.add_errback: ["f"],
    Future.success: ["value"],
    Future.failure: ["e"],
    Future.succeeded: [],
    KafkaConnectionManager._build_transport: ["node", "timeout_at"],
    KafkaTCPTransport._sock_recv: [],
    KafkaSSLTransport._sock_recv: [],
    KafkaNetSocket.sock_connect: ["net", "sock"],
}
IDENTITY = ProducerIdentity(transactional_id="t", producer_id=7, producer_epoch=3)
# Built request, highest version that may be chosen on a broker that has all, fields sent.
REQUESTS: list[tuple[Any, int, dict[str, Any]]] = [
    (
        messages.end_txn(IDENTITY, committed=True),
        4,
        {"transactional_id": "t", "producer_id": 7, "producer_epoch": 3, "committed": True},
    ),
    (
        messages.init_producer_id("t", 60_000),
        4,
        {
            "transactional_id": "t",
            "transaction_timeout_ms": 60_000,
            "producer_id": -1,
            "producer_epoch": -1,
        },
    ),
    (messages.find_coordinators(["t", "u"]), 4, {"key_type": 1, "coordinator_keys": ["t", "u"]}),
    (messages.metadata(["t"]), 12, {"allow_auto_topic_creation": False}),
    (messages.describe_transactions(["t"]), 0, {"transactional_ids": ["t"]}),
    (messages.list_transactions(["Ongoing"]), 0, {"state_filters": ["Ongoing"]}),
]
RESPONSES: list[tuple[Any, int, list[str]]] = [
    (EndTxnResponse(), 4, ["error_code"]),
    (InitProducerIdResponse(), 4, ["error_code", "producer_id", "producer_epoch"]),
    (FindCoordinatorResponse(), 4, ["coordinators"]),
    (FindCoordinatorResponse.Coordinator(), 4, ["key", "node_id", "error_code"]),
    (MetadataResponse(), 12, ["topics"]),
    (
        MetadataResponse.MetadataResponseTopic(),
        12,
        ["error_code", "name", "partitions", "topic_id"],
    ),
    (
        MetadataResponse.MetadataResponseTopic.MetadataResponsePartition(),
        8,
        ["partition_index", "leader_id"],
    ),
    (DescribeTransactionsResponse(), 0, ["transaction_states"]),
    (
        DescribeTransactionsResponse.TransactionState(),
        0,
        [
            "error_code",
            "transactional_id",
            "transaction_state",
            "transaction_timeout_ms",
            "transaction_start_time_ms",
            "producer_id",
            "producer_epoch",
        ],
    ),
    (ListTransactionsResponse(), 0, ["error_code", "transaction_states"]),
    (
        ListTransactionsResponse.TransactionState(),
        0,
        ["transactional_id", "producer_id", "transaction_state"],
    ),
]


@pytest.mark.parametrize("function", SIGNATURES, ids=lambda function: function.__qualname__)
def test_function_takes_what_is_given_to_it(function: Any) -> None:
    parameters = inspect.signature(function).parameters
    missing = [name for name in SIGNATURES[function] if name not in parameters]
    assert not missing, f"kafka-python changed {function.__qualname__}: no parameter {missing}"


def test_attributes_and_settings_are_there() -> None:
    net = NetworkSelector(client_id="test")
    manager = ConnectionManager(net, bootstrap_servers=["127.0.0.1:1"], client_id="test", **TUNING)
    assert manager._conns == {}, "kafka-python changed KafkaConnectionManager._conns"
    assert (manager.cluster.brokers(), manager.cluster.cluster_id) == ([], None)
    unknown = [name for name in TUNING if name not in KafkaConnectionManager.DEFAULT_CONFIG]
    assert not unknown, f"kafka-python has no settings {unknown}: they would be ignored silently"
    for name in ("security_protocol", "ssl_context", "sasl_mechanism", "sasl_plain_username"):
        assert name in KafkaConnectionManager.DEFAULT_CONFIG, f"kafka-python has no setting {name}"
    question = manager.cluster.metadata_request()
    assert (question.topics, question.allow_auto_topic_creation) == ([], False)
    assert isinstance(KafkaConnection.init_future, property)
    future = Future()
    assert (future.is_done, future.value, future.exception) == (False, None, None)
    assert type(KafkaNetSocket("direct://")).__name__ == "_DirectSocket"
    manager.close()
    net.close()


def test_errors_that_are_told_apart_exist() -> None:
    for name in ("KafkaTimeoutError", "RequestTimedOutError", "IncompatibleBrokerVersion"):
        assert issubclass(getattr(errors, name), Exception)
    assert all(issubclass(error, Exception) for error in LOGIN_REFUSED)


@pytest.mark.parametrize(
    ("request_", "version", "fields"), REQUESTS, ids=lambda v: type(v).__name__
)
def test_request_is_sent_at_the_version_of_the_protocol(
    request_: Any, version: int, fields: dict[str, Any]
) -> None:
    from kafka.protocol.broker_version_data import BrokerVersionData

    newest = BrokerVersionData((4, 0), api_versions={request_.API_KEY: (0, 99)})
    assert newest.api_version(request_) == version
    decoded = type(request_).decode(request_.encode(version=version), version=version)
    assert {name: getattr(decoded, name) for name in fields} == fields


@pytest.mark.parametrize(
    ("response", "version", "names"), RESPONSES, ids=lambda v: type(v).__name__
)
def test_response_has_the_fields_that_are_read(
    response: Any, version: int, names: list[str]
) -> None:
    missing = [name for name in names if not hasattr(response, name)]
    assert not missing, f"kafka-python's {type(response).__name__} has no {missing}"


def test_old_broker_is_an_answer_not_a_closed_connection() -> None:
    from kafka.protocol.broker_version_data import BrokerVersionData

    request = messages.find_coordinators(["t"])
    old = BrokerVersionData((2, 8), api_versions={request.API_KEY: (0, 3)})
    with pytest.raises(errors.IncompatibleBrokerVersion):
        old.api_version(request)


def test_lines_about_own_connections_go_to_the_log_of_this_project(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Another user of kafka-python keeps its lines, and nobody's logger is silenced."""
    theirs = logging.getLogger("kafka.net.manager")
    assert logging.getLogger("kafka").level == logging.NOTSET
    with caplog.at_level(logging.DEBUG):
        with own_log():
            theirs.error("connection %s lost", 1)
        theirs.error("connection %s lost", 2)
    told = [(r.name.partition(".")[0], r.levelname, r.getMessage()) for r in caplog.records]
    assert told == [
        ("spark_eos", "DEBUG", "connection 1 lost"),
        ("kafka", "ERROR", "connection 2 lost"),
    ]
