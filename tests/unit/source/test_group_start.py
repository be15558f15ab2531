"""startingOffsets group: where the group stopped, and no guess where it says nothing."""

import pytest

from spark_eos._kafka.admin.group import ConsumerGroups
from spark_eos._protocol.offsets.topic_partition import TopicPartition
from spark_eos.errors import OptionError
from tests.unit.source.builders import A0, A1, B0, Topics, stream


@pytest.fixture
def group(monkeypatch):
    """The committed offsets of a group, by partition."""
    committed = {}

    def asked(_groups, group_id, partitions, _deadline):
        assert group_id == "g"
        assert partitions
        return {p: committed[p] for p in partitions if p in committed}

    monkeypatch.setattr(ConsumerGroups, "committed_offsets", asked)
    return committed


def initial(topics, **given):
    return stream(topics, {"startingOffsets": "group", "group.id": "g"} | given).initial()


def test_query_starts_where_the_group_stopped(group, caplog):
    group.update({A0: 4, A1: 7})
    assert initial(Topics({A0: 10, A1: 20})) == {A0: 4, A1: 7}
    assert caplog.records == []


def test_partition_without_an_offset_starts_at_its_earliest_and_is_named(group, caplog):
    group[A0] = 4
    topics = Topics({A0: 10, A1: 20, B0: 5})
    topics.firsts = {A1: 3}
    assert initial(topics) == {A0: 4, A1: 3, B0: 0}
    (record,) = caplog.records
    assert "group 'g' has no committed offsets for a-1, b-0: these" in record.getMessage()


def test_warning_about_many_partitions_stays_short(group, caplog):
    group[A0] = 4
    initial(Topics({TopicPartition("a", partition): 10 for partition in range(100)}))
    (record,) = caplog.records
    assert "a-1, a-2," in record.getMessage()
    assert "a-20 and 79 more" in record.getMessage()


def test_group_without_any_offset_is_refused(group):
    group["other", 0] = 4
    with pytest.raises(OptionError) as caught:
        initial(Topics({A0: 10, B0: 5}), subscribe="a,b")
    for text in ("'g'", "for a, b", "never committed", "offsets.retention.minutes", "earliest"):
        assert text in str(caught.value)
    assert "source_offsets" in str(caught.value)


def test_pattern_that_no_topic_matches_yet_needs_no_offsets(group):
    assert initial(Topics({})) == {}
