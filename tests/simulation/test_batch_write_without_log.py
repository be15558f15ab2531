"""A batch write without a log: every request fails once, in every way, and nobody mends it.

The first commit request is its decision. So nothing may be aborted after it, by `commit` or by
`abort`, and an error that says that the write can be run again must be true.
"""

import pickle
import re
from collections import Counter
from itertools import count

import pytest

from spark_eos.errors import OperatorError, SparkEosError
from tests.simulation.driver import Workload, World, workload
from tests.simulation.explore import ENDED
from tests.simulation.faults import CrashError, Fault, KilledError, Way, time_out
from tests.simulation.freeze import Frozen
from tests.simulation.job import ForgetfulJob
from tests.simulation.oracle import check_nothing_open, visible_values
from tests.simulation.process import Process, running

pytestmark = pytest.mark.usefixtures("simulated")

WORKLOADS = {
    "rows": workload((1, 2, 1)),
    "one transaction": workload((2,)),
    "an empty partition": workload((1, 0, 1)),
    "ends that arrive backwards": workload((1, 1, 1), backwards=True),
    "tasks tried twice": workload((1, 1), task_attempts=2),
}
WAYS = [way for way in Way if way is not Way.POWER_CUT]  # there is no log's disk


@pytest.fixture(params=WORKLOADS.values(), ids=WORKLOADS.keys())
def rows(request):
    return request.param


class Run:
    """One run with a fault: how it failed, what it asked for, and what is visible after it."""

    def __init__(self, rows, fault):
        self.world = World(rows)
        self.job = ForgetfulJob(self.world, fault)
        self.failure = None
        try:
            self.job.run()
        except (OperatorError, *ENDED) as error:
            self.failure = error
        self.calls = self.job.schedule.calls
        self.step = self.job.schedule.fired[0] if self.job.schedule.fired else None
        self.seen, _ = visible_values(self.world.broker)

    @property
    def committed_at(self):
        """Where the first commit request is in `calls`; None where none was sent."""
        sent = (n for n, name in enumerate(self.calls) if name.startswith("EndTxn(commit)"))
        return next(sent, None)

    @property
    def says(self):
        return str(self.failure) if isinstance(self.failure, SparkEosError) else ""

    def __str__(self):
        return f"{self.step}: {self.failure!r}, visible: {dict(self.seen)}"


def runs(rows, way):
    """A run for each request."""
    for number in count(1):
        run = Run(rows, Fault(number, way))
        if run.step is None:
            return
        yield run


@pytest.mark.parametrize("way", WAYS)
def test_it_is_all_or_nothing_but_between_the_first_end_and_the_last(rows, way):
    whole = Counter(rows.values(1))
    nothing = everything = 0
    for run in runs(rows, way):
        if not run.step.name.startswith("EndTxn(commit)"):
            assert run.seen in (whole, Counter()), run
        assert run.failure is not None or run.seen == whole, run
        nothing += run.seen == Counter()
        everything += run.seen == whole
    assert nothing, "no fault hit before the ends"
    assert everything, "no fault hit behind them"


@pytest.mark.parametrize("way", WAYS)
def test_nothing_is_aborted_after_the_first_commit_request(rows, way):
    sent = 0
    for run in runs(rows, way):
        if run.committed_at is None:
            continue
        sent += 1
        ended = [n for n in run.calls[run.committed_at :] if n.startswith(("EndTxn(a", "InitPr"))]
        assert not ended, f"{run}: {ended}"
    assert sent, "no commit request was sent"


@pytest.mark.parametrize("way", WAYS)
def test_error_says_whether_the_write_can_be_run_again(rows, way):
    """What it says must still be true when the open transactions have timed out."""
    whole, safe, unsafe = Counter(rows.values(1)), 0, 0
    for run in runs(rows, way):
        time_out(run.world.broker, Way.ALL_TIMED_OUT)
        assert visible_values(run.world.broker)[0] == run.seen, run
        assert "othing is lost" not in run.says, run
        if "can be run again: " in run.says or "run the write again" in run.says:
            safe += 1
            assert not run.seen, run
        if "doubles the rows that are visible" in run.says:
            unsafe += 1
            assert isinstance(run.failure, OperatorError), run
            check_counts(run, rows)
        elif run.seen:
            is_gone = isinstance(run.failure, CrashError | KilledError | OSError)
            assert is_gone or (run.failure is None and run.seen == whole), run
    if way in (Way.REFUSED, Way.UNKNOWN):
        assert safe, "no fault hit before the commit requests"
        assert unsafe, "no fault hit a commit request"


def check_counts(run, rows):
    """What is known to be committed is, and what is committed may be known."""
    told = re.findall(r"(?:known to be committed|not known|not committed): (\d+)", run.says)
    known, unknown, refused = map(int, told)
    written = [values for values in rows.batches[0] if values]
    committed = sum(set(values) <= set(run.seen) for values in written)
    assert known <= committed <= known + unknown, run
    assert known + unknown + refused == len(written), run


@pytest.mark.parametrize("way", [Way.REFUSED, Way.UNKNOWN, Way.KILLED])
def test_failed_run_leaves_nothing_open_before_its_first_commit_request(rows, way):
    """Also of partitions whose task has sent no message, and may still run."""
    checked = 0
    for run in runs(rows, way):
        is_over = run.step.role == "task" or (
            run.step.role == "commit worker" and way is not Way.KILLED
        )
        if run.committed_at is None and is_over:
            check_nothing_open(run.world.broker)
            checked += 1
    assert checked or rows.task_attempts > 1


def test_abort_beside_a_commit_that_still_runs_tears_nothing(rows):
    """The caller was interrupted: Spark calls `abort` in another process, with every message."""
    for number in count(1):
        world = World(Workload(rows.batches))
        job = ForgetfulJob(world)
        messages = tasks_of(job)
        asked = len(job.schedule.calls)
        commit = Frozen(lambda j=job, m=messages: j.commit(m, 0), job.schedule)
        commit.run_until(asked + number)
        is_over = commit.ended
        with running(Process(role="commit worker", world=world, schedule=job.schedule)):
            pickle.loads(job._sent).abort(messages)
        commit.run_until(None)
        assert commit.error is None
        assert visible_values(world.broker)[0] == Counter(rows.values(1))
        if is_over:
            break
    assert number > 3, "the commit was not held"


def tasks_of(job):
    """What the tasks of the write have sent, when all have ended well."""
    job._options = job.options(0)
    return job.run_tasks(0)
