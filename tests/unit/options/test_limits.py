"""Where a read starts and ends: precedence, and every pair of ends that has nothing between."""

import pytest

from spark_eos._options import batch_options, stream_options
from spark_eos._protocol.offsets.offset_limit import (
    EARLIEST,
    LATEST,
    Everywhere,
    GlobalTimestamp,
    NoMatch,
    SpecificOffsets,
    SpecificTimestamps,
)
from spark_eos._protocol.offsets.topic_partition import TopicPartition
from tests.unit.options.builders import READ, refusal

A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)


def start(parse=batch_options, **options):
    return parse(READ | options).starting


def end(**options):
    return batch_options(READ | options).ending


def test_defaults():
    assert start() == Everywhere(EARLIEST)
    assert start(stream_options) == Everywhere(LATEST)
    assert end() == Everywhere(LATEST)


@pytest.mark.parametrize("word", ["earliest", "EARLIEST", " Earliest "])
def test_word_has_no_case(word):
    assert start(stream_options, startingOffsets=word) == Everywhere(EARLIEST)


def test_stream_may_start_at_the_latest_offset_of_one_partition():
    found = start(stream_options, startingOffsets=' {"a": {"1": -2, "0": -1}} ')
    assert found == SpecificOffsets(((A0, LATEST), (A1, EARLIEST)))


def test_end_may_be_the_latest_offset_of_one_partition():
    assert end(endingOffsets='{"a": {"0": -1}}') == SpecificOffsets(((A0, LATEST),))


@pytest.mark.parametrize("side", ["starting", "ending"])
def test_first_of_timestamp_timestamps_and_offsets_counts(side):
    no_match = NoMatch.ERROR if side == "starting" else NoMatch.LATEST
    given = {f"{side}Offsets": '{"a": {"0": 1}}'}
    find = start if side == "starting" else end
    assert find(**given) == SpecificOffsets(((A0, 1),))
    given[f"{side}OffsetsByTimestamp"] = '{"a": {"0": 2}}'
    assert find(**given) == SpecificTimestamps(((A0, 2),), no_match)
    given[f"{side}Timestamp"] = "3"
    assert find(**given) == GlobalTimestamp(3, no_match)


def test_timestamp_may_be_the_epoch():
    assert start(startingTimestamp="0") == GlobalTimestamp(0, NoMatch.ERROR)


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [("error", NoMatch.ERROR), ("latest", NoMatch.LATEST), (" LATEST ", NoMatch.LATEST)],
)
def test_strategy_is_that_of_the_start(strategy, expected):
    given = {"startingOffsetsByTimestampStrategy": strategy, "startingTimestamp": "5"}
    assert start(**given) == GlobalTimestamp(5, expected)
    assert end(**given, endingTimestamp="5") == GlobalTimestamp(5, NoMatch.LATEST)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (
            {"startingOffsets": ""},
            "startingOffsets '': accepted values are earliest, latest, group and JSON",
        ),
        ({"startingOffsets": "newest"}, "startingOffsets 'newest': accepted values are earliest"),
        ({"startingOffsets": "5"}, "startingOffsets '5': accepted values are earliest"),
        ({"startingOffsets": "null"}, "startingOffsets 'null': accepted values are earliest"),
        ({"startingOffsets": '["a"]'}, "startingOffsets '[\"a\"]': accepted values are earliest"),
        ({"startingOffsets": "{}"}, "startingOffsets '{}': no topic is given"),
        ({"endingOffsets": "never"}, "endingOffsets 'never': accepted values are earliest"),
        ({"endingOffsets": "{}"}, "endingOffsets '{}': no topic is given"),
        ({"startingOffsetsByTimestamp": ""}, "startingOffsetsByTimestamp '': "),
        ({"startingOffsetsByTimestamp": "latest"}, "startingOffsetsByTimestamp 'latest': "),
        ({"startingOffsetsByTimestamp": '{"a": {"0": -1}}'}, "startingOffsetsByTimestamp '{"),
        ({"endingOffsetsByTimestamp": "{}"}, "endingOffsetsByTimestamp '{}': "),
        ({"startingTimestamp": "-1"}, "startingTimestamp '-1': 0 to "),
        ({"startingTimestamp": "2026-01-01"}, "startingTimestamp '2026-01-01': 0 to "),
        ({"endingTimestamp": "1.5"}, "endingTimestamp '1.5': 0 to "),
        ({"startingOffsetsByTimestampStrategy": "earliest"}, "startingOffsetsByTimestampStrategy "),
        ({"startingOffsetsByTimestampStrategy": ""}, "startingOffsetsByTimestampStrategy '': "),
    ],
)
def test_malformed_limit_is_refused_with_its_name(options, text):
    assert refusal(lambda: end(**options)).startswith(text)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"startingOffsets": "latest"}, "startingOffsets cannot be latest: nothing would be read"),
        (
            {"startingOffsets": '{"a": {"0": 5, "1": -1}}'},
            "startingOffsets of a-1 cannot be -1 (latest): nothing would be read",
        ),
        ({"endingOffsets": "earliest"}, "endingOffsets cannot be earliest: nothing would be read"),
        (
            {"endingOffsets": '{"a": {"0": 5, "1": -2}}'},
            "endingOffsets of a-1 cannot be -2 (earliest): nothing would be read",
        ),
    ],
)
def test_batch_with_nothing_to_read_is_refused(options, text):
    assert refusal(lambda: end(**options)).startswith(text)


@pytest.mark.parametrize("what", ["Offsets", "OffsetsByTimestamp"])
@pytest.mark.parametrize(
    ("first", "last", "text"),
    [
        ('{"a": {"0": 6}}', '{"a": {"0": 5}}', "of a-0 is 6, after ending{}, which is 5"),
        (
            '{"a": {"0": 1, "1": 6}}',
            '{"a": {"0": 1, "1": 0}}',
            "of a-1 is 6, after ending{}, which is 0",
        ),
        (
            '{"a": {"0": 1}}',
            '{"a": {"0": 1, "1": 1}}',
            " and ending{} do not name the same partitions: a-1 is in one of them only",
        ),
        (
            '{"a": {"0": 1}, "b": {"0": 1}}',
            '{"a": {"0": 1}}',
            " and ending{} do not name the same partitions: b-0 is in one of them only",
        ),
    ],
)
def test_start_and_end_that_do_not_fit_are_refused(what, first, last, text):
    options = {f"starting{what}": first, f"ending{what}": last}
    found = refusal(lambda: end(**options))
    assert found.removeprefix(f"starting{what}").lstrip() == text.format(what).lstrip()


def test_start_time_behind_the_end_time_is_refused():
    found = refusal(lambda: end(startingTimestamp="6", endingTimestamp="5"))
    assert found == "startingTimestamp 6 is later than endingTimestamp 5"


@pytest.mark.parametrize(
    "options",
    [
        {"startingOffsets": '{"a": {"0": 5}}', "endingOffsets": '{"a": {"0": 5}}'},
        {"startingOffsets": '{"a": {"0": -2}}', "endingOffsets": '{"a": {"0": 0}}'},
        {"startingOffsets": '{"a": {"0": 5}}', "endingOffsets": '{"a": {"0": -1}}'},
        {"startingOffsets": '{"a": {"0": 5}}', "endingTimestamp": "1"},
        {"startingTimestamp": "5", "endingTimestamp": "5"},
        {"startingTimestamp": "5", "endingOffsetsByTimestamp": '{"a": {"0": 1}}'},
    ],
)
def test_start_and_end_that_only_kafka_can_compare_are_taken(options):
    end(**options)


def test_end_counts_only_where_its_kind_wins():
    options = {
        "startingOffsets": '{"a": {"0": 6}}',
        "endingOffsets": '{"a": {"0": 5}}',
        "endingTimestamp": "1",
    }
    assert end(**options) == GlobalTimestamp(1, NoMatch.LATEST)
