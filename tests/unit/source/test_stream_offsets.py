"""How far each batch of a query goes: all there is, a part of it, or not yet."""

import pytest

from spark_eos._protocol.offsets.topic_partition import OffsetRange
from spark_eos.errors import OptionError
from tests.unit.source.builders import A0, A1, B0, Clock, Topics, stream


def test_query_starts_where_its_options_say():
    topics = Topics({A0: 10, A1: 20})
    topics.firsts = {A0: 3}
    assert stream(topics).initial() == {A0: 10, A1: 20}
    assert stream(topics, {"startingOffsets": "earliest"}).initial() == {A0: 3, A1: 0}
    given = {"startingOffsets": '{"a": {"0": 5, "1": -1}}'}
    assert stream(topics, given).initial() == {A0: 5, A1: 20}


def test_query_cannot_start_behind_the_end():
    with pytest.raises(OptionError, match="startingOffsets of a-0 is 11, but the partition ends"):
        stream(Topics({A0: 10}), {"startingOffsets": '{"a": {"0": 11}}'}).initial()


def test_query_over_a_topic_that_does_not_exist_is_refused_after_some_tries():
    topics = Topics({A0: 10})
    given = {"subscribe": "a,c", "fetchOffset.numRetries": "4", "fetchOffset.retryIntervalMs": "0"}
    offsets = stream(topics, given)
    with pytest.raises(OptionError, match="topic 'c' does not exist"):
        offsets.initial()
    assert topics.questions == 4


@pytest.mark.parametrize("limited", [True, False])
def test_without_limits_a_batch_goes_to_the_end(limited):
    offsets = stream(Topics({A0: 10, A1: 20}))
    assert offsets.latest({A0: 0, A1: 0}, limited=limited, most=None) == {A0: 10, A1: 20}


def test_batch_stops_at_its_limit_and_the_next_goes_on():
    offsets = stream(Topics({A0: 10, A1: 30}))
    first = offsets.latest({A0: 0, A1: 0}, limited=True, most=20)
    assert first == {A0: 5, A1: 15}
    assert offsets.latest(first, limited=True, most=20) == {A0: 10, A1: 30}
    assert offsets.seen == {A0: 10, A1: 30}


def test_limit_does_not_count_where_everything_is_wanted():
    given = {"maxOffsetsPerTrigger": "1", "minOffsetsPerTrigger": "1"}
    offsets = stream(Topics({A0: 10}), given)
    assert offsets.latest({A0: 0}, limited=False, most=None) == {A0: 10}


def test_nothing_new_is_the_start_itself():
    offsets = stream(Topics({A0: 10}), {"maxOffsetsPerTrigger": "5"})
    assert offsets.latest({A0: 10}, limited=True, most=5) == {A0: 10}


def test_new_partition_is_read_from_its_beginning():
    offsets = stream(Topics({A0: 10, A1: 4, B0: 2}))
    end = offsets.latest({A0: 10}, limited=False, most=None)
    assert end == {A0: 10, A1: 4, B0: 2}
    assert offsets.ranges({A0: 10}, end) == [
        OffsetRange("a", 0, 10, 10),
        OffsetRange("a", 1, 0, 4),
        OffsetRange("b", 0, 0, 2),
    ]


def test_new_partition_has_its_part_of_the_limit():
    offsets = stream(Topics({A0: 20, A1: 10}))
    assert offsets.latest({A0: 10}, limited=True, most=10) == {A0: 15, A1: 5}


def test_first_topic_of_a_pattern_may_come_later():
    topics = Topics({})
    offsets = stream(topics, {"startingOffsets": "latest"})
    assert offsets.initial() == {}
    assert offsets.latest({}, limited=False, most=None) == {}
    topics.ends[A0] = 3
    assert offsets.latest({}, limited=False, most=None) == {A0: 3}
    assert offsets.ranges({}, {A0: 3}) == [OffsetRange("a", 0, 0, 3)]


def test_ranges_are_cut_as_the_options_say():
    offsets = stream(Topics({A0: 10}), {"minPartitions": "2"})
    assert [str(r) for r in offsets.ranges({A0: 0}, {A0: 10})] == ["a-0 [0, 5)", "a-0 [5, 10)"]
    offsets = stream(Topics({A0: 10}), {"maxRecordsPerPartition": "6"})
    assert [str(r) for r in offsets.ranges({A0: 0}, {A0: 10})] == ["a-0 [0, 5)", "a-0 [5, 10)"]


def test_partition_with_nothing_new_keeps_its_place_among_the_ranges():
    offsets = stream(Topics({A0: 10, A1: 10}))
    assert [r.size for r in offsets.ranges({A0: 10, A1: 4}, {A0: 10, A1: 10})] == [0, 6]


def test_leader_that_does_not_know_the_end_yet_is_asked_again():
    topics = Topics({A0: 10})
    topics.leader_knows = {A0: 4}
    assert stream(topics).latest({A0: 8}, limited=False, most=None) == {A0: 10}


WAITING = {"minOffsetsPerTrigger": "100", "maxTriggerDelay": "30s"}


def ask(offsets, start, most=None):
    return offsets.latest(start, limited=True, most=most)


def test_batch_waits_for_enough_offsets():
    topics = Topics({A0: 10})
    offsets = stream(topics, WAITING)
    assert ask(offsets, {A0: 0}) == {A0: 10}  # the first never waits
    topics.ends[A0] = 109
    assert ask(offsets, {A0: 10}) == {A0: 10}
    assert offsets.seen == {A0: 109}
    topics.ends[A0] = 110
    assert ask(offsets, {A0: 10}) == {A0: 110}


def test_batch_does_not_wait_longer_than_the_delay():
    topics, clock = Topics({A0: 10}), Clock()
    offsets = stream(topics, WAITING, clock)
    ask(offsets, {A0: 0})
    topics.ends[A0] = 11
    clock.now += 29.999
    assert ask(offsets, {A0: 10}) == {A0: 10}
    clock.now += 0.001
    assert ask(offsets, {A0: 10}) == {A0: 11}
    topics.ends[A0] = 12
    clock.now += 29.999
    assert ask(offsets, {A0: 11}) == {A0: 11}


def test_waiting_does_not_move_the_delay():
    topics, clock = Topics({A0: 10}), Clock()
    offsets = stream(topics, WAITING, clock)
    ask(offsets, {A0: 0})
    topics.ends[A0] = 11
    for _ in range(5):
        clock.now += 5.9
        assert ask(offsets, {A0: 10}) == {A0: 10}
    clock.now += 0.6
    assert ask(offsets, {A0: 10}) == {A0: 11}


def test_enough_offsets_begin_the_delay_anew():
    topics, clock = Topics({A0: 10}), Clock()
    offsets = stream(topics, WAITING, clock)
    ask(offsets, {A0: 0})
    clock.now += 20
    topics.ends[A0] = 200
    assert ask(offsets, {A0: 10}) == {A0: 200}
    clock.now += 20
    topics.ends[A0] = 201
    assert ask(offsets, {A0: 200}) == {A0: 200}


def test_offsets_of_new_partitions_count_towards_the_least():
    topics = Topics({A0: 10})
    offsets = stream(topics, WAITING)
    ask(offsets, {A0: 0})
    topics.ends |= {A0: 60, A1: 50}
    assert ask(offsets, {A0: 10}) == {A0: 60, A1: 50}


def test_both_limits_together():
    topics = Topics({A0: 10})
    offsets = stream(topics, WAITING | {"maxOffsetsPerTrigger": "150"})
    assert ask(offsets, {A0: 0}, most=150) == {A0: 10}
    topics.ends[A0] = 100
    assert ask(offsets, {A0: 10}, most=150) == {A0: 10}
    topics.ends[A0] = 1000
    assert ask(offsets, {A0: 10}, most=150) == {A0: 160}


def test_available_now_ends_where_the_topics_ended():
    topics = Topics({A0: 10})
    offsets = stream(topics)
    offsets.freeze()
    assert ask(offsets, {A0: 0}, most=6) == {A0: 6}
    topics.ends |= {A0: 15, A1: 5}
    assert ask(offsets, {A0: 6}, most=6) == {A0: 10}
    assert ask(offsets, {A0: 10}, most=6) == {A0: 10}
    assert offsets.latest({A0: 0}, limited=False, most=None) == {A0: 10}
    assert offsets.seen == {A0: 10}


def test_available_now_does_not_wait():
    topics = Topics({A0: 10})
    offsets = stream(topics, WAITING)
    offsets.freeze()
    assert ask(offsets, {A0: 8}) == {A0: 10}
    assert ask(offsets, {A0: 9}) == {A0: 10}


def test_answer_can_be_changed_without_moving_the_end():
    offsets = stream(Topics({A0: 10}))
    offsets.freeze()
    offsets.latest({A0: 0}, limited=False, most=None)[A0] = 99
    assert offsets.latest({A0: 0}, limited=False, most=None) == {A0: 10}


def test_records_that_come_before_the_first_batch_of_available_now_are_no_loss():
    topics = Topics({A0: 10})
    offsets = stream(topics, {"startingOffsets": "latest"})
    offsets.freeze()
    topics.ends[A0] = 12
    start = offsets.initial()
    assert offsets.latest(start, limited=False, most=None) == start


def test_new_leader_that_knows_less_ends_no_run_over_what_is_available_now():
    topics = Topics({A0: 10})
    topics.leader_knows = {A0: 4}
    offsets = stream(topics)
    offsets.freeze()
    assert offsets.latest({A0: 8}, limited=False, most=None) == {A0: 10}
