"""Offsets that are gone stop a query, or with failOnDataLoss false are left out with a warning."""

import pytest

from spark_eos.errors import DataLossError
from tests.unit.source.builders import A0, A1, B0, Topics, stream

GO_ON = {"failOnDataLoss": "false"}


def end(offsets, start):
    return offsets.latest(start, limited=False, most=None)


def loss(call, *arguments):
    with pytest.raises(DataLossError) as caught:
        call(*arguments)
    text = str(caught.value)
    assert "failOnDataLoss" in text
    return text


def only(warnings):
    (text,) = warnings()
    assert text.startswith("failOnDataLoss is false, going on without them: ")
    return text


def test_query_without_a_loss_warns_of_nothing(warnings):
    for given in ({}, GO_ON):
        offsets = stream(Topics({A0: 10, A1: 4}), given)
        offsets.ranges({A0: 5}, end(offsets, {A0: 5}))
        offsets.ranges({A0: 10, A1: 4}, end(offsets, {A0: 10, A1: 4}))
    assert warnings() == []


def test_topic_that_is_gone():
    offsets = stream(Topics({A0: 10}))
    assert "b-0 does not exist any more. It was read up to offset 7" in loss(
        end, offsets, {A0: 5, B0: 7}
    )


LEFT_OUT = [
    ({"subscribe": "a"}, "b-0 is not among the topics of subscribe"),
    ({"assign": '{"a": [0]}'}, "b-0 is not among the partitions of assign"),
    ({"subscribePattern": "^a"}, "b-0 is not among the topics of subscribePattern"),
]


@pytest.mark.parametrize(("given", "told"), LEFT_OUT)
def test_topic_that_is_there_and_is_not_subscribed_any_more(given, told, warnings):
    topics = Topics({A0: 10, B0: 9})
    text = loss(end, stream(topics, given), {A0: 5, B0: 7})
    assert f"{told} any more. It was read up to offset 7" in text
    assert "gone" not in text
    assert "deleted" not in text
    assert end(stream(topics, given | GO_ON), {A0: 5, B0: 7}) == {A0: 10}
    assert told in only(warnings)


def test_query_goes_on_without_a_topic_that_is_gone(warnings):
    offsets = stream(Topics({A0: 10}), GO_ON)
    start = {A0: 5, B0: 7}
    assert end(offsets, start) == {A0: 10}
    assert "b-0 does not exist any more" in only(warnings)
    assert [str(r) for r in offsets.ranges(start, {A0: 10})] == ["a-0 [5, 10)"]
    assert end(offsets, {A0: 10}) == {A0: 10}
    assert len(warnings()) == 1


def test_query_goes_on_where_every_topic_is_gone(warnings):
    offsets = stream(Topics({}), GO_ON)
    assert end(offsets, {A0: 5, A1: 5}) == {}
    assert offsets.ranges({A0: 5, A1: 5}, {}) == []
    assert ["a-0" in text for text in warnings()] == [True, False]


def test_offsets_that_went_backwards():
    offsets = stream(Topics({A0: 10, A1: 3}))
    text = loss(end, offsets, {A0: 5, A1: 4})
    assert "a-1 was read up to offset 4 and now ends at 3" in text


def test_query_goes_on_where_offsets_went_backwards(warnings):
    topics = Topics({A0: 10, A1: 3})
    offsets = stream(topics, GO_ON)
    start = {A0: 5, A1: 4}
    after = end(offsets, start)
    assert after == {A0: 10, A1: 3}
    assert "a-1 was read up to offset 4 and now ends at 3" in only(warnings)
    assert [str(r) for r in offsets.ranges(start, after)] == ["a-0 [5, 10)", "a-1 [4, 4)"]
    topics.ends[A1] = 6
    assert [str(r) for r in offsets.ranges(after, end(offsets, after))] == [
        "a-0 [10, 10)",
        "a-1 [3, 6)",
    ]
    assert len(warnings()) == 1


def test_offset_of_the_start_itself_is_no_loss(warnings):
    offsets = stream(Topics({A0: 5}))
    assert end(offsets, {A0: 5}) == {A0: 5}
    assert warnings() == []


@pytest.mark.parametrize("most", [None, 100])
def test_new_partition_that_lost_its_beginning(most):
    topics = Topics({A0: 10, A1: 8})
    topics.firsts = {A1: 2}
    offsets = stream(topics)
    text = loss(lambda: offsets.latest({A0: 10}, limited=True, most=most))
    assert "the new partition a-1 starts at offset 2, not at 0" in text
    assert "starts at offset 2" in loss(offsets.ranges, {A0: 10}, {A0: 10, A1: 8})


def test_query_goes_on_at_what_is_left_of_a_new_partition(warnings):
    topics = Topics({A0: 10, A1: 8})
    topics.firsts = {A1: 2}
    offsets = stream(topics, GO_ON)
    assert offsets.latest({A0: 10}, limited=True, most=3) == {A0: 10, A1: 5}
    assert "the new partition a-1 starts at offset 2, not at 0" in only(warnings)
    assert [str(r) for r in offsets.ranges({A0: 10}, {A0: 10, A1: 5})] == [
        "a-0 [10, 10)",
        "a-1 [2, 5)",
    ]


def test_new_partition_that_is_gone_again():
    offsets = stream(Topics({A0: 10}))
    text = loss(offsets.ranges, {A0: 5}, {A0: 10, A1: 4})
    assert "the new partition a-1 does not exist any more" in text


def test_query_goes_on_without_a_new_partition_that_is_gone_again(warnings):
    offsets = stream(Topics({A0: 10}), GO_ON)
    assert [str(r) for r in offsets.ranges({A0: 5}, {A0: 10, A1: 4})] == ["a-0 [5, 10)"]
    assert "the new partition a-1 does not exist any more" in only(warnings)


def test_new_partition_whose_records_are_gone_by_now_has_nothing_to_read(warnings):
    topics = Topics({A0: 10, A1: 9})
    topics.firsts = {A1: 9}
    offsets = stream(topics, GO_ON)
    assert [r.size for r in offsets.ranges({A0: 10}, {A0: 10, A1: 4})] == [0, 0]
    only(warnings)


@pytest.mark.parametrize(
    ("start", "text"),
    [({A0: 5, B0: 1}, "b-0 does not exist"), ({A0: 11}, "a-0 was read up to offset 11")],
)
def test_available_now_looks_for_losses_too(start, text, warnings):
    offsets = stream(Topics({A0: 10}))
    offsets.freeze()
    assert text in loss(end, offsets, start)
    offsets = stream(Topics({A0: 10}), GO_ON)
    offsets.freeze()
    assert end(offsets, start) == {A0: 10}
    assert text in only(warnings)


def test_start_that_is_gone(warnings):
    topics = Topics({A0: 10})
    topics.firsts = {A0: 3}
    given = {"startingOffsets": '{"a": {"0": 2}}'}
    text = loss(stream(topics, given).initial)
    assert "startingOffsets of a-0 is 2, but the partition starts at 3" in text
    assert stream(topics, given | GO_ON).initial() == {A0: 3}
    assert "startingOffsets of a-0 is 2" in only(warnings)
