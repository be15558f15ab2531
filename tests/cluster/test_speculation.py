"""Two attempts of one task at the same time. Spark has speculation on a cluster only."""

import pytest

pytestmark = pytest.mark.slow
PATIENCE_S = 240
# A copy is started as soon as a task takes a second more than the others.
SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.minTaskRuntime": "1s",
    "spark.speculation.quantile": "0.5",
}


@pytest.fixture(scope="module")
def settings():
    return SPECULATION


@pytest.mark.parametrize("step", ["written", "prepared"])
def test_copy_of_a_slow_task_is_the_one_that_counts(copy, standalone, step):
    """The slow one has its rows in Kafka, or has prepared too, when its copy begins."""
    copy.start(step)
    held = copy.application.wait_for(step, PATIENCE_S)
    assert standalone.executor_of(held) in standalone.executors()
    copy.application.finish(PATIENCE_S)  # nobody lets the slow one go: its copy did the work
    copy.check()
