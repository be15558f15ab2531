"""The options of a read: defaults, and what each given one becomes."""

import logging
import pickle

import pytest

from spark_eos._options import batch_options, stream_options
from spark_eos._options.read import includes_headers
from spark_eos._protocol.offsets.isolation import IsolationLevel
from spark_eos._protocol.offsets.offset_limit import EARLIEST, LATEST, Everywhere, SpecificOffsets
from spark_eos._protocol.offsets.subscription import Assign, Pattern, Subscribe
from tests.unit.options.builders import READ, SERVERS

BOTH = pytest.mark.parametrize("parse", [batch_options, stream_options])


@BOTH
def test_defaults(parse):
    options = parse(READ)
    assert options.subscription == Subscribe(("orders",))
    assert options.isolation_level is IsolationLevel.READ_COMMITTED
    assert options.ending == Everywhere(LATEST)
    assert options.fail_on_data_loss is True
    assert options.include_headers is False
    assert (options.min_partitions, options.max_records_per_partition) == (None, None)
    assert (options.min_offsets_per_trigger, options.max_offsets_per_trigger) == (None, None)
    assert options.max_trigger_delay_ms == 900_000
    assert (options.group_id, options.group_id_prefix) == (None, "spark-eos-source")
    assert options.poll_timeout_ms == 120_000
    assert (options.num_retries, options.retry_interval_ms) == (3, 10)
    assert options.api_timeout_ms == 60_000


def test_stream_starts_at_the_end_and_a_batch_at_the_beginning():
    assert stream_options(READ).starting == Everywhere(LATEST)
    assert batch_options(READ).starting == Everywhere(EARLIEST)


def test_everything_given():
    options = stream_options(
        SERVERS
        | {
            "assign": '{"b": [1], "a": [0]}',
            "startingOffsets": '{"a": {"0": 3}, "b": {"1": -1}}',
            "failOnDataLoss": "FALSE",
            "includeHeaders": "true",
            "minPartitions": "8",
            "maxRecordsPerPartition": "100",
            "minOffsetsPerTrigger": "5",
            "maxOffsetsPerTrigger": "5",
            "maxTriggerDelay": "30s",
            "groupIdPrefix": "team",
            "kafka.group.id": "g",
            "kafka.isolation.level": "READ_UNCOMMITTED",
            "kafka.client.id": "c",
            "kafkaConsumer.pollTimeoutMs": "1",
            "fetchOffset.numRetries": "7",
            "fetchOffset.retryIntervalMs": "0",
            "apiTimeoutMs": "1000",
            "queryName": "q",
        }
    )
    assert options.subscription == Assign((("a", 0), ("b", 1)))
    assert options.starting == SpecificOffsets(((("a", 0), 3), (("b", 1), LATEST)))
    assert (options.fail_on_data_loss, options.include_headers) == (False, True)
    assert (options.min_partitions, options.max_records_per_partition) == (8, 100)
    assert (options.min_offsets_per_trigger, options.max_offsets_per_trigger) == (5, 5)
    assert options.max_trigger_delay_ms == 30_000
    assert (options.group_id, options.group_id_prefix) == ("g", "team")
    assert options.isolation_level is IsolationLevel.READ_UNCOMMITTED
    assert (options.poll_timeout_ms, options.api_timeout_ms) == (1, 1000)
    assert (options.num_retries, options.retry_interval_ms) == (7, 0)
    assert dict(options.client.pairs) == {"bootstrap.servers": "127.0.0.1:9092", "client.id": "c"}


@BOTH
def test_options_do_not_know_case_and_travel(parse):
    given = READ | {"startingOffsets": "earliest", "kafkaConsumer.pollTimeoutMs": "5"}
    options = parse(given)
    assert options == parse({name.upper(): value for name, value in given.items()})
    assert pickle.loads(pickle.dumps(options)) == options
    assert hash(options)


def test_secret_is_not_shown():
    assert "hunter2" not in repr(stream_options(READ | {"kafka.sasl.password": "hunter2"}))


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"subscribe": " b , a,,b "}, Subscribe(("a", "b"))),
        ({"subscribePattern": " orders-.* "}, Pattern("orders-.*")),
        ({"assign": '{"a": [1, 0]}'}, Assign((("a", 0), ("a", 1)))),
    ],
)
def test_subscription(changes, expected):
    assert stream_options(SERVERS | changes).subscription == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"isolation.level": "read_uncommitted"}, "read_uncommitted"),
        ({"kafka.isolation.level": " Read_Uncommitted "}, "read_uncommitted"),
        (
            {"isolation.level": "READ_COMMITTED", "kafka.isolation.level": "read_committed"},
            "read_committed",
        ),
    ],
)
def test_isolation_level(given, expected):
    assert batch_options(READ | given).isolation_level.value == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("0", 0),
        ("500", 500),
        ("500ms", 500),
        ("30s", 30_000),
        ("15m", 900_000),
        ("15 MIN ", 900_000),
        ("2h", 7_200_000),
        (" 1d", 86_400_000),
    ],
)
def test_delay_is_a_time_as_spark_writes_it(value, expected):
    assert stream_options(READ | {"maxTriggerDelay": value}).max_trigger_delay_ms == expected


def test_batch_warns_of_what_only_a_stream_knows(caplog):
    with caplog.at_level(logging.WARNING):
        batch_options(READ | {"maxOffsetsPerTrigger": "5", "maxTriggerDelay": "5s"})
    assert [record.getMessage() for record in caplog.records] == [
        "option maxOffsetsPerTrigger has no effect on batch reads",
        "option maxTriggerDelay has no effect on batch reads",
    ]


def test_headers_are_known_before_the_other_options():
    assert includes_headers({"INCLUDEHEADERS": "True"}) is True
    assert includes_headers({"nonsense": "x"}) is False
