"""JSON of partitions, offsets and timestamps: read exactly, or refused with the option's name."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_eos._options.offset_json import offsets, partitions, timestamps

LAST_PARTITION = 2**31 - 1
LAST_OFFSET = 2**63 - 1
READERS = [partitions, offsets, timestamps]


def refusal(read, text):
    with pytest.raises(ValueError, match=r"\. Give JSON such as ") as caught:
        read(text)
    return str(caught.value)


def test_partitions_are_sorted():
    text = '{"b": [2, 0], "a": [10, 9]}'
    assert partitions(text) == (("a", 9), ("a", 10), ("b", 0), ("b", 2))


def test_offsets_are_sorted_by_number_and_may_be_latest_or_earliest():
    text = '{"b": {"0": -2}, "a": {"10": -1, "9": 23}}'
    assert offsets(text) == ((("a", 9), 23), (("a", 10), -1), (("b", 0), -2))


def test_largest_numbers_are_taken():
    text = f'{{"a": {{"{LAST_PARTITION}": {LAST_OFFSET}}}}}'
    assert offsets(text) == timestamps(text) == ((("a", LAST_PARTITION), LAST_OFFSET),)
    assert partitions(f'{{"a": [{LAST_PARTITION}]}}') == (("a", LAST_PARTITION),)


def test_partition_with_leading_zeros_is_its_number_as_in_sparks_own_connector():
    assert offsets('{"a": {"01": 5}}') == ((("a", 1), 5),)


def test_ids_of_topics_in_offsets_from_a_checkpoint_are_skipped():
    text = '{"a": {"0": 5}, "a#x-_9": {}}'
    assert offsets(text) == ((("a", 0), 5),)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"a#x": {}}', "no topic is given"),
        ('{"a#x": {"0": 5}}', "topic 'a#x': a topic's name has"),
        ('{"a": {"0": 5}, "a#x": []}', "topic 'a#x': a topic's name has"),
        ('{"a": {"0": 5}, "a#": {}}', "topic 'a#': a topic's name has"),
    ],
)
def test_what_only_looks_like_the_id_of_a_topic_is_refused(text, reason):
    assert reason in refusal(offsets, text)


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "Expecting value"),
        ("earliest", "Expecting value"),
        ("{", "Expecting property name"),
        ("{'a': {'0': 1}}", "Expecting property name"),
        ('{"a": {"0": 1}', "delimiter"),
        ('{"a": {"0": 1},}', "property name"),
        ('{"a": {"0": 1}} {}', "Extra data"),
        ("null", "no topic is given"),
        ("true", "no topic is given"),
        ("7", "no topic is given"),
        ('"a"', "no topic is given"),
        ("[]", "no topic is given"),
        ('["a"]', "no topic is given"),
        ("{}", "no topic is given"),
        ('{"a b": {"0": 1}}', "topic 'a b': a topic's name has"),
        ('{"": {"0": 1}}', "topic '': a topic's name has"),
        ('{"..": {"0": 1}}', "topic '..': a topic's name has"),
        ('{"a": null}', "topic 'a' has no"),
        ('{"a": 0}', "topic 'a' has no"),
        ('{"a": "0"}', "topic 'a' has no"),
        ('{"a": {}}', "topic 'a' has no"),
        ('{"a": []}', "topic 'a' has no"),
        ('{"a": {"0": 1}, "a": {"1": 1}}', "a name is given twice"),
        pytest.param('{"a": {"0": ' + "9" * 5000 + "}}", "Exceeds the limit", id="endless-number"),
        pytest.param(
            '{"a":' * 100_000,
            "",
            id="endless",
        ),
    ],
)
def test_text_that_is_no_json_of_topics_is_refused(read, text, reason):
    assert reason in refusal(read, text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"a": {"0": 1}}', "topic 'a' has no list of partitions"),
        ('{"a": [[0]]}', "[0] is not a partition"),
        ('{"a": ["0"]}', "'0' is not a partition"),
        ('{"a": [0.0]}', "0.0 is not a partition"),
        ('{"a": [1e0]}', "1.0 is not a partition"),
        ('{"a": [true]}', "True is not a partition"),
        ('{"a": [null]}', "None is not a partition"),
        ('{"a": [-1]}', "-1 is not a partition"),
        (f'{{"a": [{LAST_PARTITION + 1}]}}', f"{LAST_PARTITION + 1} is not a partition"),
        ('{"a": [0, 1, 0]}', "a partition is given twice"),
        ('{"a": [0], "b": []}', "topic 'b' has no list of partitions"),
    ],
)
def test_malformed_partitions_are_refused(text, reason):
    assert refusal(partitions, text).startswith(f"{reason}. Give JSON")


@pytest.mark.parametrize("read", READERS[1:])
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"a": [0]}', "topic 'a' has no partitions"),
        ('{"a": {"0": 1}, "b": {}}', "topic 'b' has no partitions"),
        ('{"a": {"-1": 1}}', "'-1' is not a partition"),
        ('{"a": {"+1": 1}}', "'+1' is not a partition"),
        ('{"a": {"": 1}}', "'' is not a partition"),
        ('{"a": {" 0": 1}}', "' 0' is not a partition"),
        ('{"a": {"a": 1}}', "'a' is not a partition"),
        ('{"a": {"0.0": 1}}', "'0.0' is not a partition"),
        ('{"a": {"1_0": 1}}', "'1_0' is not a partition"),
        ('{"a": {"²": 1}}', "'²' is not a partition"),
        ('{"a": {"٣": 1}}', "'٣' is not a partition"),
        (f'{{"a": {{"{LAST_PARTITION + 1}": 1}}}}', f"'{LAST_PARTITION + 1}' is not a partition"),
        ('{"a": {"0": {"0": 1}}}', "{'0': 1} of partition a-0 is not accepted"),
        ('{"a": {"0": [1]}}', "[1] of partition a-0 is not accepted"),
        ('{"a": {"0": "1"}}', "'1' of partition a-0 is not accepted"),
        ('{"a": {"0": "latest"}}', "'latest' of partition a-0 is not accepted"),
        ('{"a": {"0": 1.0}}', "1.0 of partition a-0 is not accepted"),
        ('{"a": {"0": 1e3}}', "1000.0 of partition a-0 is not accepted"),
        ('{"a": {"0": NaN}}', "nan of partition a-0 is not accepted"),
        ('{"a": {"0": Infinity}}', "inf of partition a-0 is not accepted"),
        ('{"a": {"0": true}}', "True of partition a-0 is not accepted"),
        ('{"a": {"0": null}}', "None of partition a-0 is not accepted"),
        ('{"a": {"0": -3}}', "-3 of partition a-0 is not accepted"),
        (f'{{"a": {{"0": {LAST_OFFSET + 1}}}}}', f"{LAST_OFFSET + 1} of partition a-0 is not"),
        ('{"a": {"0": 1, "0": 1}}', "a name is given twice"),
        ('{"a": {"0": 1, "00": 1}}', "a-00 is given twice"),
        pytest.param(
            '{"a": {"' + "1" * 5000 + '": 1}}',
            "'1",
            id="endless-partition",
        ),
    ],
)
def test_malformed_numbers_are_refused(read, text, reason):
    assert refusal(read, text).startswith(reason)


@pytest.mark.parametrize("timestamp", [-1, -2])
def test_timestamp_cannot_be_latest_or_earliest(timestamp):
    text = f'{{"a": {{"0": {timestamp}}}}}'
    assert f"{timestamp} of partition a-0 is not accepted" in refusal(timestamps, text)


LEAF = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3)
NUMBERS = st.dictionaries(st.sampled_from("0123"), st.integers(-2, 9), min_size=1)
NESTED = st.recursive(
    LEAF | NUMBERS,
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("a01"), inner, max_size=2)
    ),
    max_leaves=6,
)


@given(NESTED | st.dictionaries(st.sampled_from("abc"), NUMBERS | LEAF))
def test_whatever_json_is_read_as_it_stands_or_refused(value):
    text = json.dumps(value)
    expected = {
        (topic, int(key)): number
        for topic, numbers in (value.items() if isinstance(value, dict) else ())
        for key, number in (numbers.items() if isinstance(numbers, dict) else ())
        if key.isdigit()
    }
    well_formed = (
        isinstance(value, dict)
        and value
        and all(isinstance(numbers, dict) and numbers for numbers in value.values())
        and all(key.isdigit() for numbers in value.values() for key in numbers)
        and all(type(n) is int and -2 <= n <= LAST_OFFSET for n in expected.values())
    )
    if well_formed:
        assert dict(offsets(text)) == expected
    else:
        refusal(offsets, text)
