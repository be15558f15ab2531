"""A query on executors that have nothing but Java and the archive, and that are killed."""

import json
import os
import signal
from pathlib import Path

import pytest

# The first of them waits for the archive, the cluster and the application, and each executor that
# is killed has to be started and to unpack the archive anew.
pytestmark = pytest.mark.slow
PATIENCE_S = 240


def assert_in_the_archive(cluster, paths):
    """Unpacked by an executor, below the folder of its worker."""
    for path in map(Path, paths):
        assert path.relative_to(cluster.folder).parts[0].startswith("worker-"), path
        assert "environment" in path.parts, path


def test_rows_come_once_from_executors_that_have_no_python(copy, standalone):
    copy.start()
    copy.application.finish(PATIENCE_S)
    copy.check()
    tasks = json.loads(copy.application.tasks.read_text())
    assert_in_the_archive(standalone, [path for task in tasks for path in task])


def test_each_executor_is_killed_while_it_writes(copy, standalone):
    """One has written its rows, the other has prepared, too. Both lose what they shuffled."""
    copy.start("written", "prepared")
    held = [copy.application.wait_for(step, PATIENCE_S) for step in ("written", "prepared")]
    assert_in_the_archive(standalone, [Path(f"/proc/{pid}/exe").readlink() for pid in held])
    executors = [standalone.executor_of(pid) for pid in held]
    assert sorted(executors) == sorted(standalone.executors())
    for executor in executors:
        standalone.kill(executor)
        standalone.wait_for_executors(without=[executor])
    copy.application.finish(PATIENCE_S)
    copy.check()
    assert set(executors).isdisjoint(standalone.executors())


def test_python_worker_of_an_executor_is_killed(copy, standalone):
    copy.start("prepared")
    held = copy.application.wait_for("prepared", PATIENCE_S)
    executor = standalone.executor_of(held)
    os.kill(held, signal.SIGKILL)
    copy.application.finish(PATIENCE_S)
    copy.check()
    assert executor in standalone.executors()
