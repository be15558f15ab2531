"""A topic that was deleted and created again is told by its id, also after a restart."""

import pytest

from spark_eos._protocol.offsets.stream_position import StreamPosition
from spark_eos.errors import DataLossError
from tests.unit.source.builders import A0, A1, B0, Clock, Topics, stream_with_ids

GO_ON = {"failOnDataLoss": "false"}
A0_TO_10 = StreamPosition({A0: 10}, {"a": "old"})


def topics_with(ends, **ids):
    topics = Topics(ends)
    topics.ids = dict(ids)
    return topics


def end(offsets, start):
    return offsets.latest(start, limited=False, most=None)


def texts(ranges):
    return [str(r) for r in ranges]


def loss(call, *arguments):
    with pytest.raises(DataLossError) as caught:
        call(*arguments)
    return str(caught.value)


def only(warnings):
    (text,) = warnings()
    assert text.startswith(
        "failOnDataLoss is false, going on with the new topic from its earliest offset: "
    )
    return text


def test_start_and_end_have_the_ids_of_their_topics():
    offsets = stream_with_ids(topics_with({A0: 10, B0: 3}, a="old"), {"startingOffsets": "latest"})
    start = offsets.initial()
    assert start == StreamPosition({A0: 10, B0: 3}, {"a": "old", "b": "first"})
    offsets._session.offset_reader.ends = {A0: 12}
    assert end(offsets, A0_TO_10) == StreamPosition({A0: 12}, {"a": "old"})
    assert offsets.seen == StreamPosition({A0: 12}, {"a": "old"})


def test_cluster_without_ids_is_read_as_before(warnings):
    topics = topics_with({A0: 12}, a=None)
    offsets = stream_with_ids(topics)
    assert offsets.initial() == StreamPosition({A0: 12})
    assert end(offsets, StreamPosition({A0: 10})) == StreamPosition({A0: 12})
    # The ids of the cluster that the query read before.
    assert end(offsets, A0_TO_10) == StreamPosition({A0: 12})
    assert texts(offsets.ranges(A0_TO_10, StreamPosition({A0: 12}))) == ["a-0 [10, 12)"]
    assert warnings() == []


@pytest.mark.parametrize("limited", [True, False])
def test_start_without_ids_gets_them_with_the_next_records_and_not_before(limited):
    topics = topics_with({A0: 10}, a="old")
    offsets = stream_with_ids(topics)
    start = StreamPosition({A0: 10})
    assert offsets.latest(start, limited=limited, most=None) is start
    topics.ends[A0] = 11
    after = StreamPosition({A0: 11}, {"a": "old"})
    assert offsets.latest(start, limited=limited, most=None) == after
    assert texts(offsets.ranges(start, after)) == ["a-0 [10, 11)"]


@pytest.mark.parametrize("records", [0, 3, 10, 30])
def test_topic_that_was_replaced_while_the_query_was_down_ends_it(records):
    offsets = stream_with_ids(topics_with({A0: records, A1: records}, a="new"))
    text = loss(end, offsets, StreamPosition({A0: 10, A1: 7}, {"a": "old"}))
    assert "topic 'a' was deleted and created again" in text
    assert "read up to offset a-0: 10, a-1: 7." in text
    assert "start with a new checkpointLocation and startingOffsets earliest" in text
    assert "set failOnDataLoss to false: the query then goes on with the new topic" in text


def test_topic_of_many_partitions_does_not_fill_the_text():
    many = {("a", partition): 5 for partition in range(300)}
    text = loss(
        end, stream_with_ids(topics_with(many, a="new")), StreamPosition(many, {"a": "old"})
    )
    assert "a-9: 5 and 290 more partitions." in text


@pytest.mark.parametrize("records", [2, 3, 10, 30])
def test_query_goes_on_with_all_of_the_new_topic_and_warns_once(records, warnings):
    topics = topics_with({A0: records, A1: records, B0: 8}, a="new")
    topics.firsts = {A0: 2}
    offsets = stream_with_ids(topics, GO_ON)
    start = StreamPosition({A0: 10, B0: 5}, {"a": "old", "b": "first"})
    after = end(offsets, start)
    assert after == StreamPosition({A0: records, A1: records, B0: 8}, {"a": "new", "b": "first"})
    expected = [f"a-0 [2, {records})", f"a-1 [0, {records})", "b-0 [5, 8)"]
    assert texts(offsets.ranges(start, after)) == expected
    assert end(offsets, after) is after
    assert "topic 'a' was deleted and created again. It was read up to offset a-0: 10" in only(
        warnings
    )


def test_batch_over_a_new_topic_that_runs_again_reads_the_same():
    topics = topics_with({A0: 20}, a="new")
    after = end(stream_with_ids(topics, GO_ON), A0_TO_10)
    topics.ends[A0] = 25
    # What was planned without failOnDataLoss is not lost once more.
    assert texts(stream_with_ids(topics).ranges(A0_TO_10, after)) == ["a-0 [0, 20)"]


def test_partition_that_the_new_topic_does_not_have_is_no_second_loss(warnings):
    offsets = stream_with_ids(topics_with({A0: 4}, a="new"), GO_ON)
    start = StreamPosition({A0: 10, A1: 10}, {"a": "old"})
    after = end(offsets, start)
    assert after == StreamPosition({A0: 4}, {"a": "new"})
    assert texts(offsets.ranges(start, after)) == ["a-0 [0, 4)"]
    only(warnings)


def test_new_topic_has_its_part_of_the_limit():
    topics = topics_with({A0: 30, B0: 20}, a="new")
    offsets = stream_with_ids(topics, GO_ON)
    start = StreamPosition({A0: 100, B0: 10}, {"a": "old", "b": "first"})
    first = offsets.latest(start, limited=True, most=20)
    assert first.offsets == {A0: 15, B0: 15}
    assert texts(offsets.ranges(start, first)) == ["a-0 [0, 15)", "b-0 [10, 15)"]
    second = offsets.latest(first, limited=True, most=20)
    assert texts(offsets.ranges(first, second)) == ["a-0 [15, 30)", "b-0 [15, 20)"]


def test_new_topic_waits_for_enough_records_and_is_still_known_then(warnings):
    topics, clock = topics_with({A0: 10}, a="old"), Clock()
    offsets = stream_with_ids(topics, GO_ON | {"minOffsetsPerTrigger": "5"}, clock)
    offsets.latest(StreamPosition({A0: 0}, {"a": "old"}), limited=True, most=None)
    topics.ends, topics.ids = {A0: 4}, {"a": "new"}
    for _ in range(2):
        assert offsets.latest(A0_TO_10, limited=True, most=None) is A0_TO_10
    topics.ends = {A0: 5}
    after = offsets.latest(A0_TO_10, limited=True, most=None)
    assert after == StreamPosition({A0: 5}, {"a": "new"})
    assert texts(offsets.ranges(A0_TO_10, after)) == ["a-0 [0, 5)"]
    only(warnings)


def test_topic_that_is_replaced_in_a_frozen_run_moves_the_end_once():
    topics = topics_with({A0: 10}, a="old")
    offsets = stream_with_ids(topics, GO_ON)
    offsets.freeze()
    first = offsets.latest(StreamPosition({A0: 0}, {"a": "old"}), limited=True, most=6)
    assert first == StreamPosition({A0: 6}, {"a": "old"})
    topics.ends, topics.ids = {A0: 3}, {"a": "new"}
    second = end(offsets, first)
    assert second == StreamPosition({A0: 3}, {"a": "new"})
    assert texts(offsets.ranges(first, second)) == ["a-0 [0, 3)"]
    topics.ends[A0] = 9
    assert end(offsets, second) is second


def test_topic_that_was_away_in_between_is_a_new_one(warnings):
    topics = topics_with({A0: 10}, a="old")
    offsets = stream_with_ids(topics, GO_ON)
    topics.ends = {}
    without = end(offsets, A0_TO_10)
    assert without == StreamPosition({})
    topics.ends, topics.ids = {A0: 3}, {"a": "new"}
    after = end(offsets, without)
    assert texts(offsets.ranges(without, after)) == ["a-0 [0, 3)"]
    (text,) = warnings()
    assert "a-0 does not exist any more" in text


def test_batch_whose_topic_was_replaced_before_it_ran_again_ends_the_query():
    offsets = stream_with_ids(topics_with({A0: 100, B0: 9}, a="new"))
    start = StreamPosition({A0: 10, B0: 2}, {"a": "old", "b": "first"})
    planned = StreamPosition({A0: 20, A1: 4, B0: 5}, {"a": "old", "b": "first"})
    text = loss(offsets.ranges, start, planned)
    assert "topic 'a' was deleted and created again" in text
    assert "was to read from offset a-0: 10 to offset a-0: 20, a-1: 4." in text
    assert "failOnDataLoss" in text


def test_query_reads_nothing_for_such_a_batch_and_then_the_new_topic_from_its_beginning(warnings):
    topics = topics_with({A0: 100, A1: 2, B0: 9}, a="new")
    offsets = stream_with_ids(topics, GO_ON)
    start = StreamPosition({A0: 10, B0: 2}, {"a": "old", "b": "first"})
    planned = StreamPosition({A0: 20, A1: 4, B0: 5}, {"a": "old", "b": "first"})
    assert texts(offsets.ranges(start, planned)) == ["a-0 [20, 20)", "a-1 [4, 4)", "b-0 [2, 5)"]
    after = end(offsets, planned)
    assert texts(offsets.ranges(planned, after)) == ["a-0 [0, 100)", "a-1 [0, 2)", "b-0 [5, 9)"]
    only(warnings)


def test_topic_that_was_replaced_twice_is_not_read_from_the_beginning_of_the_first():
    topics = topics_with({A0: 30}, a="third")
    offsets = stream_with_ids(topics, GO_ON)
    planned = StreamPosition({A0: 20}, {"a": "second"})
    assert texts(offsets.ranges(A0_TO_10, planned)) == ["a-0 [20, 20)"]


def test_first_batch_of_a_query_that_runs_again_over_a_new_topic():
    """Spark asks for the start once more then, and gets that of the new topic."""
    topics = topics_with({A0: 30}, a="new")
    offsets = stream_with_ids(topics, {"startingOffsets": "earliest"})
    assert "created again" in loss(offsets.ranges, offsets.initial(), A0_TO_10)


def test_kafka_is_asked_for_ids_only_where_the_process_does_not_know_them():
    topics = topics_with({A0: 20}, a="old")
    again = stream_with_ids(topics)
    for _ in range(2):
        again.ranges(A0_TO_10, StreamPosition({A0: 15}, {"a": "old"}))
    assert topics.questions == 1
    running = stream_with_ids(topics)
    after = end(running, A0_TO_10)
    topics.questions = 0
    running.ranges(A0_TO_10, after)
    running.ranges(StreamPosition({A0: 10}), StreamPosition({A0: 15}))
    assert topics.questions == 0


def test_old_checkpoint_is_compared_with_what_its_process_saw():
    topics = topics_with({A0: 10}, a="old")
    offsets = stream_with_ids(topics)
    end(offsets, StreamPosition({A0: 10}))
    topics.ends, topics.ids = {A0: 30}, {"a": "new"}
    assert "read up to offset a-0: 10." in loss(end, offsets, StreamPosition({A0: 10}))


def test_batch_after_an_old_checkpoint_leaves_the_new_topic_to_the_next_one(warnings):
    """Its start has no id. If the batch ran again, nobody could tell what it began with."""
    topics = topics_with({A0: 10, B0: 5}, a="old")
    offsets = stream_with_ids(topics, GO_ON)
    start = StreamPosition({A0: 10, B0: 5})
    assert end(offsets, start) is start
    topics.ends, topics.ids = {A0: 30, B0: 6}, {"a": "new"}
    without = end(offsets, start)
    assert without == StreamPosition({B0: 6}, {"b": "first"})
    after = end(offsets, without)
    assert texts(offsets.ranges(without, after)) == ["a-0 [0, 30)", "b-0 [6, 6)"]
    assert end(offsets, after) is after
    only(warnings)
