"""Which last words of a driver which fault explains, and for how long."""

import re
from types import SimpleNamespace

import pytest

from chaos.endings import CAUSES, GONE, NEVER, ended_well, explaining
from chaos.faults import FAULTS
from chaos.timing import Fault
from spark_eos import errors
from tests.unit.chaos.builders import driver

OVER = 20.0
LOST_SOURCE = """[STREAM_FAILED] Query [id = 1] terminated with exception: (no cause message)
=== Streaming Query ===
java.io.EOFException
\tat java.base/java.io.DataInputStream.readInt(DataInputStream.java:386)
\tat org.apache.spark.sql.execution.python.streaming.PythonStreamingSourceRunner.latestOffset(x:208)
\tat org.apache.spark.sql.execution.datasources.v2.python.PythonMicroBatchStreamBase.x(x:53)
"""
FENCED = "Traceback\n  ...\nspark_eos.errors.FencedError: another driver"
CONCURRENT = "[CONCURRENT_STREAM_LOG_UPDATE] Concurrent update."
CRASHED = "Job aborted: Lost task 0.3: Python worker exited unexpectedly (crashed)."
UNREACHABLE = "spark_eos.errors.BrokerUnreachableError: batch 83 is decided, but x did not say"
UNDELIVERED = "spark_eos.errors.DeliveryError: the transaction of x failed: Timed out (25045 ms)"
LOST = "spark_eos.errors.TransactionLostError: x of batch 37 was prepared at epoch 44"
STALE = "spark_eos.errors.StaleLogError: the transaction log at x ends with batch 3 of query y"
NO_SPACE = (
    "spark_eos.errors.RetriableError: batch 16 of query x could not be written to the"
    " transaction log at x: No space left on device (os error 28)"
)
NO_ANSWER = "spark_eos.errors.RetriableError: batch 16 of query x is decided, but y is not known"


def a_run(*names, drivers=()):
    """Faults at once, over at 20; one that is to a driver is to driver 7."""
    faults = [Fault(i, name, "driver 7", OVER - 2, OVER) for i, name in enumerate(names)]
    return SimpleNamespace(faults=faults, drivers=drivers)


def failed(text, after_s=1.0):
    return driver(9, "end", OVER + after_s, outcome="failed", text=text)


@pytest.mark.parametrize(
    ("text", "fault", "for_s"),
    [
        (FENCED, "zombie-driver", 70),
        (FENCED, "driver-kill-at", 70),
        (FENCED, "clock-skew", 70),
        (FENCED, "copied-checkpoint", 70),
        (STALE, "copied-checkpoint", 30),
        (STALE, "restored-backup", 30),
        (CONCURRENT, "zombie-driver", 70),
        (UNREACHABLE, "torn-by-time-out", 70),
        (UNREACHABLE, "coordinator-kill", 70),
        (UNREACHABLE, "time-out-frozen", 70),
        (UNDELIVERED, "net-drop", 70),
        (UNDELIVERED, "executor-kill", 70),
        (LOST, "time-out-frozen", 70),
        (LOST, "worker-kill-at", 70),
        (NO_SPACE, "log-failure", 30),
        (NO_SPACE, "zombie-driver", 30),
        (NO_ANSWER, "broker-kill", 70),
        (CRASHED, "worker-kill-at", 30),
        (CRASHED, "executor-pause", 30),
        (CRASHED, "driver-stop", 30),
        (LOST_SOURCE, "clock-jump", 60),
        (LOST_SOURCE.replace("EOFException", "IOException: Broken pipe"), "worker-kill", 30),
    ],
)
def test_fault_explains_for_a_while(text, fault, for_s):
    run = a_run(fault)
    assert explaining(failed(text, for_s), run) is run.faults[0]
    assert ended_well(failed(text, for_s), run)
    assert explaining(failed(text, for_s + 0.1), run) is None
    assert explaining(failed(text, -2.1), run) is None  # before it began


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        (LOST_SOURCE.replace("EOFException", "IOException: x"), ("worker-kill",)),
        (LOST_SOURCE.replace("PythonStreamingSourceRunner", "Other"), ("worker-kill",)),
        (
            "java.lang.NullPointerException\n\tat x.PythonStreamingSourceRunner.x(x)",
            ("worker-kill",),
        ),
        (CRASHED, ("broker-kill", "net-drop", "leader-move", "log-failure", "coordinator-pause")),
        # The whole driver was killed: nothing of the next one is gone.
        (CRASHED, ("driver-kill", "driver-kill-at", "time-out-down", "power-cut")),
        (CRASHED, ()),
        (FENCED, ()),
        (FENCED, ("broker-kill", "net-drop", "worker-kill", "worker-pause", "log-failure")),
        (FENCED, ("time-out-frozen", "time-out-down", "torn-by-time-out", "power-cut")),
        (FENCED, ("restored-backup",)),
        (STALE, ()),
        (STALE, ("zombie-driver", "driver-kill-at", "log-failure", "power-cut", "broker-kill")),
        (CONCURRENT, ("driver-kill-at", "driver-pause", "copied-checkpoint")),
        (UNREACHABLE, ("driver-kill", "worker-kill", "executor-kill", "log-failure")),
        (UNDELIVERED, ("worker-kill", "log-failure", "time-out-down")),
        (LOST, ("log-failure", "power-cut", "time-out-down")),
        (NO_SPACE, ("broker-kill", "net-drop", "worker-kill", "clock-jump")),
        (NO_ANSWER, ("log-failure", "power-cut")),
        ("spark_eos.errors.RetriableError: cannot read checkpointLocation", tuple(FAULTS)),
        ("spark_eos.errors.SparkEosError: message 1 of batch 2", tuple(FAULTS)),
        # One comes from the other: a fault for each.
        (f"{UNDELIVERED}\n{FENCED}", ("net-drop",)),
        (f"{FENCED}\n{CRASHED}", ("worker-kill",)),
    ],
)
def test_what_none_explains(text, faults):
    run = a_run(*faults)
    assert explaining(failed(text), run) is None
    assert not ended_well(failed(text), run)


def test_words_of_two_faults_are_explained_by_the_last():
    run = a_run("driver-kill", "net-drop", "worker-kill")
    run.faults[1] = Fault(1, "net-drop", "", OVER - 1, OVER)
    assert explaining(failed(f"{UNDELIVERED}\n{FENCED}"), run).name == "net-drop"


def test_zombie_is_there_until_it_has_ended():
    """And longer than it may hinder the others for no process is gone by it."""
    others = [driver(6, "end", 300.0), driver(7, "end", 200.0), driver(7, "start", 400.0)]
    run = a_run("zombie-driver", drivers=others)
    for text in (FENCED, CONCURRENT, LOST, UNDELIVERED):
        assert explaining(failed(text, 200.0 + 70.0 - OVER), run) is run.faults[0]
        assert explaining(failed(text, 200.0 + 70.1 - OVER), run) is None
    for text in (CRASHED, UNREACHABLE):
        assert explaining(failed(text, 71.0), run) is None


@pytest.mark.parametrize(
    ("outcome", "text", "well"),
    [
        ("ended", "", True),
        ("killed", "exit status -9", True),
        ("killed", "exit status -11", False),
        ("failed", "exit status -9, and nobody had asked it to", False),
    ],
)
def test_driver_that_said_nothing(outcome, text, well):
    end = driver(9, "end", OVER, outcome=outcome, text=text)
    assert ended_well(end, a_run("worker-kill")) is well
    assert explaining(end, a_run("worker-kill")) is None


def test_each_error_of_the_product_is_expected_or_never():
    """A new one has to be told to the judge."""
    every = vars(errors).values()
    classes = [e for e in every if isinstance(e, type) and issubclass(e, errors.SparkEosError)]
    leaves = [one for one in classes if one is not errors.SparkEosError]
    assert leaves
    for one in leaves:
        text = f"spark_eos.errors.{one.__name__}: batch 1 of x is decided"
        assert any(cause.words.search(text) for cause in CAUSES) != bool(NEVER.search(text)), one
        assert not GONE.search(text)


def test_each_fault_of_the_table_is_one_of_the_benchs():
    """A name that no fault has would excuse nothing, and nobody would notice."""
    for cause in CAUSES:
        for name in cause.faults.pattern.split("|"):
            assert any(re.fullmatch(name, fault) for fault in FAULTS), name
