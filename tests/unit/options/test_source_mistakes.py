"""Options of a read that contradict each other, are reserved or wrong: one error names them."""

import pytest

from spark_eos._options import batch_options, sink_options, stream_options
from spark_eos._options.read import includes_headers
from tests.unit.options.builders import READ, SERVERS, refusal

BOTH = pytest.mark.parametrize("parse", [batch_options, stream_options])


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({}, "none is given"),
        ({"subscribe": "a", "assign": '{"a": [0]}'}, "assign and subscribe are given"),
        ({"subscribe": "a", "subscribePattern": "a"}, "subscribe and subscribePattern are given"),
        (
            {"assign": '{"a": [0]}', "subscribePattern": "a"},
            "assign and subscribePattern are given",
        ),
        (
            {"assign": '{"a": [0]}', "subscribe": "a", "subscribePattern": "a"},
            "assign and subscribe and subscribePattern are given",
        ),
    ],
)
@BOTH
def test_one_of_assign_subscribe_and_pattern_is_required(parse, given, found):
    expected = f"one of assign, subscribe and subscribePattern is required: {found}"
    assert refusal(parse, SERVERS | given) == expected


@pytest.mark.parametrize("name", ["endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp"])
def test_stream_has_no_end(name):
    found = refusal(stream_options, READ | {name: "latest"})
    assert found == f"option {name} is for batch reads only"


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"startingOffsets": "latest"}, "startingOffsets cannot be latest"),
        ({"endingOffsets": "earliest"}, "endingOffsets cannot be earliest"),
        ({"startingTimestamp": "2", "endingTimestamp": "1"}, "startingTimestamp 2 is later than"),
        (
            {"startingOffsets": '{"a": {"0": 2}}', "endingOffsets": '{"a": {"0": 1}}'},
            "startingOffsets of a-0 is 2, after endingOffsets, which is 1",
        ),
        (
            {"startingOffsets": '{"a": {"0": 2}}', "endingOffsets": '{"a": {"1": 2}}'},
            "startingOffsets and endingOffsets do not name the same partitions",
        ),
    ],
)
def test_batch_without_anything_between_its_ends_is_refused(changes, text):
    assert refusal(batch_options, READ | changes).startswith(text)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"kafka.bootstrap.servers": ""}, "option kafka.bootstrap.servers is missing"),
        ({"bootstrap.servers": "h:1"}, "unknown option 'bootstrap.servers': did you mean 'kafka.b"),
        ({"startingOffset": "x"}, "unknown option 'startingoffset': did you mean 'startingOffsets"),
        ({"failOnDataLos": "x"}, "unknown option 'failondatalos': did you mean 'failOnDataLoss'?"),
        ({"path": "x"}, "unknown option 'path': accepted options are assign, subscribe"),
        ({"topic": "x"}, "unknown option 'topic': "),
        ({"checkpointLocation": "x"}, "unknown option 'checkpointlocation': "),
        ({"subscribe": ""}, "subscribe '': no topic is given"),
        ({"subscribe": " , "}, "subscribe ' , ': no topic is given"),
        ({"subscribe": "a b"}, "subscribe 'a b': a topic's name has"),
        ({"subscribe": "a;b"}, "subscribe 'a;b': a topic's name has"),
        ({"minOffsetsPerTrigger": "6", "maxOffsetsPerTrigger": "5"}, "minOffsetsPerTrigger 6 is"),
        ({"maxOffsetsPerTrigger": "0"}, "maxOffsetsPerTrigger '0': 1 to 9223372036854775807"),
        ({"minOffsetsPerTrigger": "few"}, "minOffsetsPerTrigger 'few': 1 to"),
        ({"maxTriggerDelay": ""}, "maxTriggerDelay '': give a time such as 15m"),
        ({"maxTriggerDelay": "m"}, "maxTriggerDelay 'm': "),
        ({"maxTriggerDelay": "-1s"}, "maxTriggerDelay '-1s': "),
        ({"maxTriggerDelay": "1.5m"}, "maxTriggerDelay '1.5m': "),
        ({"maxTriggerDelay": "1 week"}, "maxTriggerDelay '1 week': "),
        ({"minPartitions": "0"}, "minPartitions '0': 1 to 2147483647 partitions"),
        ({"maxRecordsPerPartition": "-5"}, "maxRecordsPerPartition '-5': 1 to"),
        ({"includeHeaders": "yes"}, "includeHeaders 'yes': true or false is accepted"),
        ({"failOnDataLoss": ""}, "failOnDataLoss '': true or false is accepted"),
        ({"groupIdPrefix": " "}, "option groupIdPrefix is empty"),
        ({"kafka.group.id": ""}, "option kafka.group.id is empty"),
        (
            {"isolation.level": "serializable"},
            "isolation.level 'serializable': accepted values are read_",
        ),
        (
            {"kafka.isolation.level": ""},
            "kafka.isolation.level '': accepted values are read_committed",
        ),
        ({"startingOffsets": "group"}, "startingOffsets 'group' needs option group.id"),
        ({"group.id": "a", "kafka.group.id": "b"}, "group.id and kafka.group.id have different"),
        (
            {"group.id": "Ann", "kafka.group.id": "ann"},
            "group.id and kafka.group.id have different",
        ),
        ({"kafka.max.request.size": "1"}, "option kafka.max.request.size is a setting of the Java"),
        (
            {"isolation.level": "read_committed", "kafka.isolation.level": "read_uncommitted"},
            "isolation.level and kafka.isolation.level have different values",
        ),
        ({"kafkaConsumer.pollTimeoutMs": "0"}, "kafkaConsumer.pollTimeoutMs '0': 1 to"),
        ({"fetchOffset.numRetries": "0"}, "fetchOffset.numRetries '0': 1 to 2147483647 tries"),
        ({"fetchOffset.retryIntervalMs": "-1"}, "fetchOffset.retryIntervalMs '-1': 0 to"),
        ({"apiTimeoutMs": "0"}, "apiTimeoutMs '0': 1 to 2147483647 milliseconds"),
        ({"kafka.auto.offset.reset": "x"}, "option kafka.auto.offset.reset cannot be set: use st"),
        ({"kafka.enable.auto.commit": "x"}, "option kafka.enable.auto.commit cannot be set: use"),
        ({"kafka.enable.auto.offset.store": "x"}, "option kafka.enable.auto.offset.store cannot"),
        ({"kafka.enable.partition.eof": "x"}, "option kafka.enable.partition.eof cannot be set: "),
        ({"kafka.allow.auto.create.topics": "x"}, "option kafka.allow.auto.create.topics cannot"),
        ({"kafka.key.deserializer": "x"}, "option kafka.key.deserializer is a setting of the Java"),
    ],
)
@BOTH
def test_mistake_is_named(parse, changes, text):
    assert refusal(parse, READ | changes).startswith(text)


@pytest.mark.parametrize("pattern", ["", " "])
def test_empty_pattern_is_refused(pattern):
    found = refusal(stream_options, SERVERS | {"subscribePattern": pattern})
    assert found == "option subscribePattern is empty"


@pytest.mark.parametrize(
    "pattern",
    [
        "(",
        "[a",
        "*",
        "a{2,1}",
        "(?P<n>a)(?P<n>b)",
        "a{99999999999999999999}",
        pytest.param("(" * 500 + ")" * 500, id="deep"),
    ],
)
def test_pattern_that_is_no_regular_expression_is_refused(pattern):
    found = refusal(stream_options, SERVERS | {"subscribePattern": pattern})
    assert found.startswith(f"subscribePattern '{pattern}': not a regular expression: ")


def test_option_of_a_read_is_unknown_to_a_write():
    given = SERVERS | {"checkpointLocation": "/tmp/c", "startingOffsets": "earliest"}
    assert "unknown option 'startingoffsets'" in refusal(sink_options, given)


def test_headers_that_are_neither_true_nor_false_are_refused():
    assert refusal(includes_headers, {"includeHeaders": "1"}).startswith("includeHeaders '1': ")
