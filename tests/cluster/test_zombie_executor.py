"""An executor that is frozen while it writes, given up, replaced, and that wakes up too late."""

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

import pytest

from chaos.process import GONE, children

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
PATIENCE_S = 240
# For a late one to send its rows; what it could send later would be found in the end all the same.
ALONE_S = 5.0
# An executor that says nothing for ten seconds is given up, and what it has shuffled is lost.
IMPATIENCE = {
    "spark.executor.heartbeatInterval": "2s",
    "spark.network.timeout": "10s",
    "spark.network.timeoutInterval": "1s",
    "spark.shuffle.io.maxRetries": "1",
    "spark.shuffle.io.retryWait": "1s",
}


@pytest.fixture(scope="module")
def settings():
    return IMPATIENCE


class Host:
    """A worker of the cluster with its executor and all below: they are frozen together."""

    def __init__(self, cluster, python_worker):
        executor = cluster.executor_of(python_worker)
        worker = next(pid for pid in cluster.workers if executor in children(pid))
        daemons = list(children(executor))
        below = [pid for daemon in daemons for pid in children(daemon)]
        self._all = [worker, executor, *daemons, *below]

    def signal(self, number):
        for pid in self._all:
            with suppress(ProcessLookupError):
                os.kill(pid, number)


def wait_until(condition, what):
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


def has_ended(pid):
    """Also if nobody has taken notice of it yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except GONE:
        return True


def test_executor_that_wakes_up_when_its_batch_is_finished_adds_nothing(copy, standalone):
    """It has begun and sent no row. Its rows go out when those of its replacement are visible."""
    application = copy.application
    written, prepared = (application.failpoints / f"{s}.reached" for s in ("written", "prepared"))
    copy.start("begun")
    held = application.wait_for("begun", PATIENCE_S)
    host = Host(standalone, held)
    host.signal(signal.SIGSTOP)
    try:
        application.finish(PATIENCE_S)
        copy.check()
        for step in ("written", "prepared"):
            application.arm(step)
        application.go("begun")
        # It alone at first: while all above it is frozen, nobody ends it before it has tried.
        os.kill(held, signal.SIGCONT)
        wait_until(written.exists, "it did not go on")
        assert int(written.read_text()) == held
        application.go("written")
        time.sleep(ALONE_S)
    finally:
        host.signal(signal.SIGCONT)
    # Its executor hears now what became of it, and that the driver wants neither any more.
    wait_until(lambda: prepared.exists() or has_ended(held), "it is still there")
    assert not prepared.exists(), "it was not fenced: all its rows are in Kafka"
    copy.check()
