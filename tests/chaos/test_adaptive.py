"""A batch that runs again under adaptive execution, with another number of sink partitions.

Spark coalesces the partitions of a shuffle by their size, so the number of a batch's transactions
is known only when it runs, and may be another one the next time. Here the size that Spark aims
for is another one after each start: that knob is not kept in the checkpoint.
"""

import pytest
from deltalake import DeltaTable

from tests.chaos.conftest import Scenario
from tests.chaos.driver import Drivers
from tests.chaos.oracle import assert_none_open, committed_values, open_partitions
from tests.chaos.transactions import end_open_transactions

# Each test starts two drivers of its own, and on a busy machine that takes its time.
pytestmark = pytest.mark.slow
PATIENCE_S = 150
# A shuffle by key alone, without a number: Spark takes 4 partitions, and may coalesce them.
BY_KEY = {"partitions": "key"}
# What to aim for, by the number that comes of it. A batch has about 2600 bytes.
SIZES = {4: "1b", 2: "1700b", 1: "1m"}


@pytest.fixture
def adaptive(tmp_path, monkeypatch, kafka, topic):
    """A scenario with drivers of its own: their settings are not those of the other tests."""
    drivers = Drivers(tmp_path)
    yield AdaptiveScenario(tmp_path, drivers, kafka.bootstrap_servers, topic(3), monkeypatch)
    drivers.close()


class AdaptiveScenario(Scenario):
    """Its batches are of one file, and of as many sink partitions as Spark is told to aim for."""

    def __init__(self, folder, drivers, bootstrap_servers, topic, environment):
        super().__init__(folder, drivers, bootstrap_servers, topic)
        self._environment = environment

    def coalescing(self, count, *arm):
        """A new driver whose batches come in so many sink partitions."""
        settings = {
            "spark.sql.adaptive.enabled": "true",
            "spark.sql.adaptive.coalescePartitions.parallelismFirst": "false",
            "spark.sql.adaptive.coalescePartitions.minPartitionSize": "1b",
            "spark.sql.adaptive.advisoryPartitionSizeInBytes": SIZES[count],
        }
        words = [f"--conf {name}={value}" for name, value in settings.items()]
        self._environment.setenv("PYSPARK_SUBMIT_ARGS", " ".join([*words, "pyspark-shell"]))
        return self.driver(*arm, **BY_KEY)

    def sink_partitions(self):
        """In how many sink partitions each decision found its batch, oldest first."""
        table = DeltaTable(self.checkpoint / "transaction_state").to_pyarrow_table()
        rows = [r for r in table.to_pylist() if r["transaction_status"] == "PrepareCommit"]
        rows.sort(key=lambda row: row["entry_timestamp"])
        return {row["batch_id"]: row["sink_partitions"] for row in rows}


def kill_at(scenario, step, count):
    with scenario.coalescing(count, step) as driver:
        driver.wait_for(step, PATIENCE_S)
        driver.kill()


@pytest.mark.parametrize("counts", [(4, 2), (2, 4), (2, 1)], ids=str)
def test_undecided_batch_runs_again_in_another_number_of_partitions(adaptive, counts):
    """Killed when all is written: the transactions of partitions that are no more are aborted."""
    before, after = counts
    adaptive.add_files(2)
    kill_at(adaptive, "checked", before)
    assert open_partitions(adaptive.bootstrap_servers, adaptive.topic)
    with adaptive.coalescing(after) as driver:
        driver.finish(PATIENCE_S)
    assert adaptive.sink_partitions() == {0: after, 1: after}
    adaptive.check()


@pytest.mark.parametrize("counts", [(4, 2), (2, 4)], ids=str)
def test_decided_batch_is_completed_whatever_it_comes_back_as(adaptive, counts):
    """Killed behind the decision: nothing of the batch that runs again is written."""
    before, after = counts
    adaptive.add_files(2)
    kill_at(adaptive, "decided", before)
    with adaptive.coalescing(after) as driver:
        driver.finish(PATIENCE_S)
    assert adaptive.sink_partitions() == {0: before, 1: after}
    adaptive.check()


def test_torn_batch_that_comes_back_in_other_partitions_stops_the_query(adaptive):
    """Decided, and two of its four transactions lost: nobody can tell which rows are missing."""
    adaptive.add_files(1)
    kill_at(adaptive, "decided", 4)
    end_open_transactions(adaptive, commit_partitions={0, 2})
    seen = committed_values(adaptive.bootstrap_servers, adaptive.topic)
    assert 0 < len(seen) < len(adaptive.rows)
    with adaptive.coalescing(2) as driver:
        driver.fail("NonDeterministicReplayError", PATIENCE_S)
        driver.fail("ran again with other rows in partition 0")
        driver.fail("in 4 partitions")
    assert committed_values(adaptive.bootstrap_servers, adaptive.topic) == seen
    assert_none_open(adaptive.bootstrap_servers, adaptive.topic)
