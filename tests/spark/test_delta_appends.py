"""Micro-batches of a job into a Delta table: each once, and none for another."""

import pytest

from spark_eos.errors import NonDeterministicReplayError
from spark_eos.job.delta import DeltaAppends


@pytest.fixture
def append(spark, tmp_path):
    """Appends one number, as a micro-batch of a run that may be the next one."""
    runs = []

    def run(number, batch_id, *, end, application="job", restarts=False):
        offsets = tmp_path / "checkpoint" / "offsets"
        offsets.mkdir(parents=True, exist_ok=True)
        (offsets / str(batch_id)).write_text(f'v1\n{{"batchWatermarkMs":0}}\n{end}')
        if restarts or not runs:
            runs.append(DeltaAppends(application, str(tmp_path / "checkpoint")))
        rows = spark.createDataFrame([(number,)], "number int")
        runs[-1].append(rows, str(tmp_path / "table"), batch_id)
        table = spark.read.format("delta").load(str(tmp_path / "table"))
        return sorted(row.number for row in table.collect())

    return run


def test_batch_that_runs_again_adds_nothing(append):
    append(0, 0, end="a")
    assert append(1, 1, end="b") == [0, 1]
    assert append(1, 1, end="b", restarts=True) == [0, 1]
    assert append(2, 2, end="c") == [0, 1, 2]


def test_number_that_is_given_to_other_offsets_is_refused(append):
    append(0, 0, end="a")
    append(1, 1, end="b")
    append(2, 2, end="c")
    with pytest.raises(NonDeterministicReplayError, match="has micro-batch 1 of this job already"):
        append(3, 1, end="d", restarts=True)
    assert append(2, 2, end="c", restarts=True) == [0, 1, 2]


def test_other_writers_of_the_table_do_not_count(append, spark, tmp_path):
    append(0, 0, end="a")
    rows = spark.createDataFrame([(7,)], "number int").write.format("delta").mode("append")
    rows.option("userMetadata", "no json").save(str(tmp_path / "table"))
    rows.option("userMetadata", "[1]").save(str(tmp_path / "table"))
    assert append(0, 0, end="b", application="other", restarts=True) == [0, 0, 7, 7]
