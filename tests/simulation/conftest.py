"""Puts the product's sink on the broker, the log and the clock in memory, and nothing of it away.

The product builds its own sessions, of a kind whose cluster, checkpoint and clock are simulated.
Replaced besides are deltalake, below the product's log, and Spark's context of a task.
"""

import sys
from types import SimpleNamespace

import pytest
from pyspark import TaskContext

import spark_eos._log.delta
import spark_eos._log.settle
import spark_eos._log.tail
import spark_eos._session
import spark_eos._sink.driver.abort
import spark_eos._sink.driver.commit
import spark_eos._sink.driver.commit_without_log
import spark_eos._sink.task.context
import spark_eos._sink.writer
from spark_eos.errors import StaleLogError
from tests.simulation import clients, log
from tests.simulation.explore import EXPECTED
from tests.simulation.process import current


class Watched:
    """The log of what does not raise: what nobody expects must not be lost in it."""

    def exception(self, *_arguments):
        error = sys.exception()
        if not isinstance(error, (*EXPECTED, StaleLogError)):
            raise AssertionError(f"failed, and went on: {error!r}") from error

    def warning(self, *arguments, **_more):
        self.exception(*arguments)


def task_context():
    """Spark's, as far as a batch writer asks for it."""
    return SimpleNamespace(partitionId=lambda: current().task.partition)


@pytest.fixture(scope="module")
def simulated():
    """The product's sink without Spark, Kafka and Delta."""
    sink, driver, table = spark_eos._sink, spark_eos._sink.driver, spark_eos._log
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spark_eos._session, "session_of", clients.session_of)
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
        patch.setattr(sink.task.context, "current_task", lambda: current().task)
        patch.setattr(TaskContext, "get", task_context)
        patch.setattr(sink.writer, "task_started", lambda: None)
        for module in (driver.abort, driver.commit, driver.commit_without_log):
            patch.setattr(module, "_LOG", Watched())
        yield
