"""A write outside of a Spark task is refused: it would take the transactional id of a task."""

import pytest

from spark_eos._options import batch_write_options, sink_options
from spark_eos._protocol.transactions.batch import RecoveredQuery
from spark_eos._sink.writer import BatchWriter, StreamWriter
from spark_eos.errors import SparkEosError

GIVEN = {"kafka.bootstrap.servers": "127.0.0.1:9", "topic": "t"}


def test_batch_write_outside_of_a_task_is_refused():
    options = batch_write_options(GIVEN)
    writer = BatchWriter(options, RecoveredQuery(query_id=options.query_id), run_id="r")
    with pytest.raises(SparkEosError, match="outside of a Spark task"):
        writer.write(iter(()))


def test_stream_write_outside_of_a_task_is_refused(tmp_path):
    options = sink_options(GIVEN | {"checkpointLocation": str(tmp_path)})
    writer = StreamWriter(options, RecoveredQuery(query_id="q"))
    with pytest.raises(SparkEosError, match="outside of a Spark task"):
        writer.write(iter(()))
