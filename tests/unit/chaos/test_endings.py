"""Which last words of a driver a fault explains."""

import pytest

from spark_eos import errors
from tests.chaos.bench.endings import EXPECTED, NEVER, ended_well

LOST_SOURCE = """[STREAM_FAILED] Query [id = 1] terminated with exception: (no cause message)
=== Streaming Query ===
java.io.EOFException
\tat java.base/java.io.DataInputStream.readInt(DataInputStream.java:386)
\tat org.apache.spark.sql.execution.python.streaming.PythonStreamingSourceRunner.latestOffset(x:208)
\tat org.apache.spark.sql.execution.datasources.v2.python.PythonMicroBatchStreamBase.x(x:53)
"""


@pytest.mark.parametrize(
    ("outcome", "text"),
    [
        ("ended", ""),
        ("killed", "exit status -9"),
        ("failed", "Traceback\n  ...\nspark_eos.errors.FencedError: another driver"),
        ("failed", "[CONCURRENT_STREAM_LOG_UPDATE] Concurrent update to the log."),
        ("failed", "Job aborted: Lost task 0.3: Python worker exited unexpectedly (crashed)."),
        ("failed", LOST_SOURCE),
        ("failed", LOST_SOURCE.replace("java.io.EOFException", "java.io.IOException: Broken pipe")),
    ],
)
def test_what_a_fault_explains(outcome, text):
    assert ended_well(outcome, text)


@pytest.mark.parametrize(
    "text",
    [
        LOST_SOURCE.replace("EOFException", "IOException: x"),
        LOST_SOURCE.replace("PythonStreamingSourceRunner", "Other"),
        "java.lang.NullPointerException\n\tat x.PythonStreamingSourceRunner.commit(x.scala:1)",
    ],
)
def test_what_none_explains(text):
    assert not ended_well("failed", text)


def test_each_error_of_the_product_is_expected_or_never():
    """A new one has to be told to the judge."""
    classes = [one for one in vars(errors).values() if isinstance(one, type)]
    leaves = [one for one in classes if one is not errors.SparkEosError]
    assert leaves
    for one in leaves:
        text = f"spark_eos.errors.{one.__name__}: x"
        assert bool(EXPECTED.search(text)) != bool(NEVER.search(text)), one
