"""The offsets of a batch's source, in a transaction on the cluster that is written to."""

import json

import pytest
from confluent_kafka import Producer

from spark_eos._deadline import Deadline
from spark_eos._options import sink_options
from spark_eos._session import session_of
from spark_eos._sink.driver import offsets
from spark_eos.errors import OptionError

QUERY = "0f9b7a52-64b5-4f0c-9d1e-2a5d0e6f7a81"
END = 10


@pytest.fixture
def prepare(tmp_path, kafka, topic):
    """Prepares the offsets of batch 0, which ends at offset 10 of a topic; gives that topic too."""
    source = topic(1)
    (tmp_path / "offsets").mkdir()
    (tmp_path / "offsets" / "0").write_text("v1\n{}\n" + json.dumps({source: {"0": END}}))
    options = sink_options(
        {
            "kafka.bootstrap.servers": kafka.bootstrap_servers,
            "checkpointLocation": str(tmp_path),
            "topic": source,
            "group.id": f"group-of-{source}",
            "apiTimeoutMs": "10000",
        }
    )

    def run():
        session, deadline = session_of(options, QUERY), Deadline.after_ms(30_000)
        found = offsets.prepare_offsets(session, options.group_id, 0, deadline)
        session.cluster.coordinator.end([found.identity], committed=False, deadline=deadline)
        return found

    return run, source


def test_topic_of_the_same_name_on_another_cluster_is_not_the_sources(prepare, monkeypatch):
    """A copy from cluster to cluster: the group would stand where nobody has read."""
    monkeypatch.setattr(offsets, "OUTDATED_S", 0.2)
    with pytest.raises(OptionError, match=r"ends at 0, before the batch's end at 10.*Remove group"):
        prepare[0]()


def test_offsets_up_to_the_end_of_the_topic_are_sent(prepare, kafka):
    run, source = prepare
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    for number in range(END):
        producer.produce(source, str(number), partition=0)
    assert producer.flush(30) == 0
    assert json.loads(run().source_offsets) == {source: {"0": END}}
