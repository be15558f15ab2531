"""Puts the product's sink on the broker, the log and the clock in memory, and nothing of it away.

Replaced are the names under which the product reaches the outside, in the modules that use them.
"""

import sys
from types import SimpleNamespace

import pytest
from pyspark import TaskContext

import spark_eos.log.delta
import spark_eos.log.settle
import spark_eos.log.tail
import spark_eos.recovery.survey
import spark_eos.sink.abort
import spark_eos.sink.batch_commit
import spark_eos.sink.batch_writer
import spark_eos.sink.commit_without_log
import spark_eos.sink.connections
import spark_eos.sink.decide
import spark_eos.sink.fence
import spark_eos.sink.offsets
import spark_eos.sink.plan
import spark_eos.sink.task
import spark_eos.sink.topic_ids
import spark_eos.sink.write
import spark_eos.sink.writer
from spark_eos.deadline import Deadline
from spark_eos.errors import StaleLogError
from spark_eos.recovery import ownership
from spark_eos.recovery.checkpoint import Checkpoint
from tests.simulation import clients, log
from tests.simulation.explore import EXPECTED
from tests.simulation.process import Clock, Kept, current


class Watched:
    """The log of what does not raise: what nobody expects must not be lost in it."""

    def exception(self, *_arguments):
        error = sys.exception()
        if not isinstance(error, (*EXPECTED, StaleLogError)):
            raise AssertionError(f"failed, and went on: {error!r}") from error

    def warning(self, *arguments, **_more):
        self.exception(*arguments)


def chance():
    """What the world of the process draws."""
    return current().world.chance()


def task_context():
    """Spark's, as far as a batch writer asks for it."""
    return SimpleNamespace(partitionId=lambda: current().task.partition)


@pytest.fixture(scope="module")
def simulated():
    """The product's sink without Spark, Kafka and Delta."""
    clock = Clock()
    sink, table = spark_eos.sink, spark_eos.log
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sink.connections, "CoordinatorClient", clients.CoordinatorClient)
        patch.setattr(sink.connections, "_coordinators", Kept("coordinators"))
        patch.setattr(sink.connections, "_logs", Kept("logs"))
        patch.setattr(sink.plan, "_planned", Kept("planned"))
        for module in (sink.plan, sink.batch_commit):
            patch.setattr(module, "check_cluster", clients.check_cluster)
        patch.setattr(sink.write, "TransactionalProducer", clients.TransactionalProducer)
        for name in ("TransactionalProducer", "partition_counts", "end_offsets", "group_metadata"):
            patch.setattr(sink.offsets, name, getattr(clients, name))
        patch.setattr(sink.offsets, "check_not_in_use", clients.check_not_in_use)
        patch.setattr(sink.offsets, "_seen", Kept("seen"))
        patch.setattr(sink.plan, "restore_group_offsets", clients.restore_group_offsets)
        patch.setattr(sink.topic_ids, "topic_ids", clients.topic_ids)
        patch.setattr(sink.topic_ids, "_known", Kept("topics"))
        patch.setattr(ownership, "driver_number", lambda _location: current().driver)
        patch.setattr(ownership, "_chance", chance)
        patch.setattr(spark_eos.recovery.survey, "fates", clients.fates)
        patch.setattr(spark_eos.recovery.survey, "offsets_fate", clients.offsets_fate)
        patch.setattr(table.delta, "open_table", log.open_table)
        patch.setattr(table.delta, "check_nesting", lambda *_where: None)
        patch.setattr(table.delta, "has_own_columns", lambda _table: True)
        patch.setattr(table.delta, "FileStore", log.Store)
        patch.setattr(table.delta, "_write", log.write)
        patch.setattr(table.delta, "_write_nothing", log.write_nothing)
        for module in (table.delta, table.tail, table.settle):
            patch.setattr(module, "live_files", log.live_files)
        for module in (table.delta, table.settle):  # rows stay what they are: no Arrow, no Parquet
            patch.setattr(module, "to_table", list)
            patch.setattr(module, "from_table", log.newest_first)
        patch.setattr(Checkpoint, "_read", clients.read_file)
        patch.setattr(Checkpoint, "_list", clients.list_files)
        patch.setattr(sink.task, "current_task", lambda: current().task)
        patch.setattr(TaskContext, "get", task_context)
        patch.setattr(sink.writer, "task_started", lambda: None)
        for module in (sink.fence, sink.plan, sink.decide, sink.writer, sink.batch_writer):
            patch.setattr(module, "time", clock)
        for module in (sink.abort, sink.batch_commit, sink.commit_without_log):
            patch.setattr(module, "_LOG", Watched())
        made = classmethod(lambda cls, ms: cls(clock.monotonic() + ms / 1000, clock))
        patch.setattr(Deadline, "after_ms", made)
        yield
