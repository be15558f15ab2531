"""What Spark is given to store, and what it gives back."""

import pickle

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

from spark_eos._options import stream_options
from spark_eos._source.reader import StreamReader
from spark_eos.errors import DataLossError
from tests.unit.source.builders import A0, A1, Topics, stream_with_ids

STORED = {"a": {"0": 10}, "a#first": {}}


def reader(topics):
    found = StreamReader(stream_options({"kafka.bootstrap.servers": "b:1", "subscribe": "a"}))
    found.__dict__["_offsets"] = stream_with_ids(topics, {"startingOffsets": "latest"})
    return found


def test_ids_of_topics_are_in_what_is_stored():
    topics = Topics({A0: 10})
    source = reader(topics)
    assert source.reportLatestOffset() is None
    assert source.initialOffset() == STORED
    topics.ends[A0] = 12
    end = source.latestOffset(STORED, ReadAllAvailable())
    assert end == source.reportLatestOffset() == {"a": {"0": 12}, "a#first": {}}
    (task,) = source.partitions(STORED, end)
    assert str(task.value.range) == "a-0 [10, 12)"


def test_without_new_records_the_start_comes_back_word_for_word():
    """Spark compares offsets as texts: another text would be a micro-batch without a row."""
    source = reader(Topics({A0: 10}))
    for start in ({"a": {"0": 10}}, {"a#first": {}, "a": {"0": 10}}):
        assert source.latestOffset(start, ReadAllAvailable()) is start


def test_loss_in_a_batch_that_runs_again_is_raised_by_its_only_task():
    """Spark plans the source first. An error there would keep the sink from its recovery."""
    topics = Topics({A0: 30, A1: 30})
    topics.ids = {"a": "second"}
    source = reader(topics)
    (task,) = source.partitions(STORED, {"a": {"0": 12, "1": 5}, "a#first": {}})
    with pytest.raises(DataLossError, match="topic 'a' was deleted and created again"):
        source.read(pickle.loads(pickle.dumps(task)))
