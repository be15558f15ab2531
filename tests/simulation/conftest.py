"""Puts the product's sink on the broker, the log and the clock in memory, and nothing of it away.

The product builds its own sessions, of a kind whose cluster, log, checkpoint and clock are
simulated. Besides, Spark's context of a task is simulated. What the product logs as a failure that
it goes on after is compared with the failures that are expected here.
"""

import logging
import sys
from types import SimpleNamespace

import pytest
from pyspark import TaskContext

import spark_eos._session
from spark_eos.errors import StaleLogError
from tests.simulation import clients
from tests.simulation.explore import EXPECTED
from tests.simulation.process import current


class Watch(logging.Handler):
    """Fails where the product goes on after an error that nobody expects."""

    def emit(self, _record):
        error = sys.exception()
        if error is not None and not isinstance(error, (*EXPECTED, StaleLogError)):
            raise AssertionError(f"failed, and went on: {error!r}") from error


def task_context():
    """Spark's, of the task that runs."""
    task = current().task
    properties = {
        "sql.streaming.queryId": task.query_id,
        "spark.jobGroup.id": task.run_id,
        "streaming.sql.batchId": str(task.batch_id),
    }
    return SimpleNamespace(partitionId=lambda: task.partition, getLocalProperty=properties.get)


@pytest.fixture(scope="module")
def simulated():
    """The product's sink without Spark, Kafka and Delta."""
    watch, log = Watch(logging.WARNING), logging.getLogger("spark_eos")
    log.addHandler(watch)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spark_eos._session, "session_of", clients.session_of)
        patch.setattr(TaskContext, "get", task_context)
        yield
    log.removeHandler(watch)
