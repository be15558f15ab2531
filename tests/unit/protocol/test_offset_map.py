"""Offsets to the text of a checkpoint and back, with the same text for the same offsets."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_eos._protocol.offsets.offset_map import from_map, kafka_offsets, to_map, topic_ids_of
from spark_eos._protocol.offsets.stream_position import StreamPosition, replaced

PLACES = st.tuples(
    st.text("abcXYZ019._-", min_size=1, max_size=4), st.integers(0, 2**31 - 1) | st.integers(0, 12)
)
TOPICS = st.text("abcXYZ019._-", min_size=1, max_size=4).filter(lambda t: t not in (".", ".."))
IDS = st.dictionaries(TOPICS, st.text("abcXYZ019_-", min_size=22, max_size=22), max_size=6)
OFFSETS = st.dictionaries(PLACES, st.integers(-2, 2**63 - 1), max_size=12)


def test_map_is_the_one_of_sparks_own_source():
    offsets = {("b", 0): 5, ("a", 10): 2, ("a", 9): 1}
    assert json.dumps(to_map(offsets)) == '{"a": {"9": 1, "10": 2}, "b": {"0": 5}}'


def test_ids_stand_behind_the_offsets_as_topics_without_partitions():
    offsets = {("b", 0): 5, ("a", 9): 1, ("a-b", 0): 7}
    ids = {"b": "x-_9", "a-b": "z", "a": "y"}
    text = '{"a": {"9": 1}, "a-b": {"0": 7}, "b": {"0": 5}, "a#y": {}, "a-b#z": {}, "b#x-_9": {}}'
    assert json.dumps(to_map(offsets, ids)) == text
    assert kafka_offsets(text) == offsets
    assert topic_ids_of(json.loads(text)) == ids


@pytest.mark.parametrize("key", ["a", "a#", "#x", "a b#x"])
def test_other_topics_without_partitions_name_no_id(key):
    assert topic_ids_of({key: {}}) == {}
    assert topic_ids_of({"a#x": {"0": 1}}) == {}


def test_topics_are_compared_where_both_sides_have_an_id():
    assert replaced({"a": "1", "b": "1", "c": "1"}, {"a": "1", "b": "2", "d": "1"}) == {"b"}


def test_position_has_no_ids_of_other_topics():
    found = StreamPosition.of({("a", 0): 1, ("b", 0): 2}, {"a": "1", "c": "3"})
    assert found == StreamPosition({("a", 0): 1, ("b", 0): 2}, {"a": "1"})


def test_nothing_is_nothing():
    assert to_map({}) == {}
    assert to_map({}, {}) == {}
    assert from_map({}) == {}
    assert from_map({"a": {}}) == {}


@given(OFFSETS, IDS)
def test_offsets_and_ids_come_back_from_the_checkpoints_text(offsets, ids):
    stored = json.loads(json.dumps(to_map(offsets, ids)))
    assert from_map(stored) == offsets
    assert topic_ids_of(stored) == ids


@given(OFFSETS, IDS, st.randoms(use_true_random=False))
def test_text_does_not_depend_on_the_order(offsets, ids, random):
    def shuffled(mapping):
        items = list(mapping.items())
        random.shuffle(items)
        return dict(items)

    text = json.dumps(to_map(shuffled(offsets), shuffled(ids)))
    assert text == json.dumps(to_map(offsets, ids))


def test_map_is_not_changed_by_the_one_who_reads_it():
    offsets = {("a", 0): 1}
    to_map(offsets)["a"]["0"] = 2
    assert offsets == {("a", 0): 1}
