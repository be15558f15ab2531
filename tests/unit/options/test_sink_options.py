"""Options in, frozen values out; every mistake gets one error that names it."""

import pickle

import pytest

from spark_eos._options import sink_options
from spark_eos.errors import OptionError

REQUIRED = {"kafka.bootstrap.servers": "127.0.0.1:9092", "checkpointLocation": "/tmp/c"}


def test_defaults():
    options = sink_options(REQUIRED)
    assert options.topic is None
    assert options.transaction_log == "/tmp/c/transaction_state"
    assert options.transactional_id_prefix == "spark-eos"
    assert options.transaction_timeout_ms == 900_000
    assert options.api_timeout_ms == 60_000
    assert options.include_headers is True


def test_everything_given():
    options = sink_options(
        REQUIRED
        | {
            "topic": "orders",
            "transactionLog": "/tmp/log",
            "transactionalIdPrefix": "team-a",
            "kafka.transaction.timeout.ms": "5000",
            "kafka.linger.ms": "20",
            "deliveryGuarantee": "exactly_once",
            "includeHeaders": "FALSE",
            "apiTimeoutMs": "1000",
            "queryName": "q",
        }
    )
    assert options.topic == "orders"
    assert options.transaction_log == "/tmp/log"
    assert options.transactional_id_prefix == "team-a"
    assert options.transaction_timeout_ms == 5000
    assert options.client.get("linger.ms") == "20"
    assert options.include_headers is False
    assert options.api_timeout_ms == 1000


def test_options_do_not_know_case_and_travel():
    options = sink_options({name.lower(): value for name, value in REQUIRED.items()})
    assert options == sink_options(REQUIRED)
    assert pickle.loads(pickle.dumps(options)) == options
    assert hash(options)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"topics": "x"}, "unknown option 'topics': did you mean 'topic'"),
        ({"foo": "x"}, "unknown option 'foo': accepted options are checkpointLocation, topic"),
        ({"bootstrap.servers": "x"}, "did you mean 'kafka.bootstrap.servers'"),
        ({"kafka.bootstrap.servers": ""}, "kafka.bootstrap.servers is missing"),
        ({"kafka.bootstrap.servers": "host:port"}, "kafka.bootstrap.servers"),
        ({"checkpointLocation": " "}, "checkpointLocation is empty"),
        ({"topic": "a b"}, "topic 'a b'"),
        ({"topic": ""}, "topic ''"),
        ({"topic": ".."}, "topic '..'"),
        ({"topic": "x" * 250}, "1 to 249"),
        ({"transactionLog": ""}, "transactionLog is empty"),
        ({"transactionalIdPrefix": "a/b"}, "transactionalIdPrefix 'a/b'"),
        ({"kafka.transaction.timeout.ms": "soon"}, "kafka.transaction.timeout.ms 'soon'"),
        ({"kafka.transaction.timeout.ms": "999"}, "1000 to 2147483647 milliseconds"),
        ({"kafka.transaction.timeout.ms": "-5"}, "1000 to"),
        ({"apiTimeoutMs": "0"}, "1 to 2147483647 milliseconds"),
        ({"kafka.transaction.timeout.ms": str(2**31)}, "kafka.transaction.timeout.ms"),
        ({"apiTimeoutMs": "1.5"}, "apiTimeoutMs '1.5'"),
        ({"includeHeaders": "yes"}, "includeHeaders 'yes': true or false"),
        ({"deliveryGuarantee": "twice"}, "deliveryGuarantee 'twice'"),
        ({"kafka.transactional.id": "x"}, "kafka.transactional.id cannot be set"),
        ({"kafka.enable.idempotence": "false"}, "kafka.enable.idempotence cannot be set"),
        ({"kafka.acks": "1"}, "kafka.acks cannot be set"),
        ({"kafka.allow.auto.create.topics": "true"}, "kafka.allow.auto.create.topics cannot be"),
        ({"kafka.key.serializer": "x"}, "kafka.key.serializer"),
    ],
)
def test_mistake_is_named(changes, text):
    with pytest.raises(OptionError, match=text.replace("(", r"\(")):
        sink_options(REQUIRED | changes)


@pytest.mark.parametrize("missing", REQUIRED)
def test_missing_option_is_named(missing):
    given = {name: value for name, value in REQUIRED.items() if name != missing}
    with pytest.raises(OptionError, match=f"option {missing} is missing"):
        sink_options(given)


def test_secret_is_not_shown():
    options = sink_options(
        REQUIRED | {"kafka.sasl.password": "hunter2", "kafka.sasl.username": "u"}
    )
    assert "hunter2" not in repr(options)
