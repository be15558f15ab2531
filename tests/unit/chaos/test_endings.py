"""Which last words of a driver a fault explains."""

import pytest

from spark_eos import errors
from tests.chaos.bench.endings import GONE, NEVER, SAID, ended_well

LOST_SOURCE = """[STREAM_FAILED] Query [id = 1] terminated with exception: (no cause message)
=== Streaming Query ===
java.io.EOFException
\tat java.base/java.io.DataInputStream.readInt(DataInputStream.java:386)
\tat org.apache.spark.sql.execution.python.streaming.PythonStreamingSourceRunner.latestOffset(x:208)
\tat org.apache.spark.sql.execution.datasources.v2.python.PythonMicroBatchStreamBase.x(x:53)
"""


FENCED = "Traceback\n  ...\nspark_eos.errors.FencedError: another driver"
CRASHED = "Job aborted: Lost task 0.3: Python worker exited unexpectedly (crashed)."


@pytest.mark.parametrize(
    ("outcome", "text", "faults"),
    [
        ("ended", "", ()),
        ("killed", "exit status -9", ()),
        ("failed", FENCED, ("zombie-driver",)),
        ("failed", "[CONCURRENT_STREAM_LOG_UPDATE] Concurrent update.", ("zombie-driver",)),
        ("failed", CRASHED, ("broker-kill", "worker-kill-at")),
        ("failed", LOST_SOURCE, ("clock-jump",)),
        (
            "failed",
            LOST_SOURCE.replace("EOFException", "IOException: Broken pipe"),
            ("worker-kill",),
        ),
    ],
)
def test_what_a_fault_explains(outcome, text, faults):
    assert ended_well(outcome, text, faults)


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
        (CRASHED, ()),
        (FENCED, ()),
    ],
)
def test_what_none_explains(text, faults):
    assert not ended_well("failed", text, faults)


def test_each_error_of_the_product_is_expected_or_never():
    """A new one has to be told to the judge."""
    classes = [one for one in vars(errors).values() if isinstance(one, type)]
    leaves = [one for one in classes if one is not errors.SparkEosError]
    assert leaves
    for one in leaves:
        text = f"spark_eos.errors.{one.__name__}: x"
        assert bool(SAID.search(text)) != bool(NEVER.search(text)), one
        assert not GONE.search(text)
