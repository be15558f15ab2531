"""Offsets to the text of a checkpoint and back, with the same text for the same offsets."""

import json

from hypothesis import given
from hypothesis import strategies as st

from spark_eos.protocol.offset_map import from_map, to_map

PLACES = st.tuples(
    st.text("abcXYZ019._-", min_size=1, max_size=4), st.integers(0, 2**31 - 1) | st.integers(0, 12)
)
OFFSETS = st.dictionaries(PLACES, st.integers(-2, 2**63 - 1), max_size=12)


def test_map_is_the_one_of_sparks_own_source():
    offsets = {("b", 0): 5, ("a", 10): 2, ("a", 9): 1}
    assert json.dumps(to_map(offsets)) == '{"a": {"9": 1, "10": 2}, "b": {"0": 5}}'


def test_nothing_is_nothing():
    assert to_map({}) == {}
    assert from_map({}) == {}
    assert from_map({"a": {}}) == {}


@given(OFFSETS)
def test_offsets_come_back_from_the_checkpoints_text(offsets):
    assert from_map(json.loads(json.dumps(to_map(offsets)))) == offsets


@given(OFFSETS, st.randoms(use_true_random=False))
def test_text_does_not_depend_on_the_order(offsets, random):
    shuffled = list(offsets.items())
    random.shuffle(shuffled)
    assert json.dumps(to_map(dict(shuffled))) == json.dumps(to_map(offsets))


def test_map_is_not_changed_by_the_one_who_reads_it():
    offsets = {("a", 0): 1}
    to_map(offsets)["a"]["0"] = 2
    assert offsets == {("a", 0): 1}
