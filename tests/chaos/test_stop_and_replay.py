"""A query that is stopped leaves nothing open; a batch that runs again adds nothing."""

import json
import re
import shutil
import uuid

import pytest

from tests.chaos.conftest import ROWS_PER_FILE, slow
from tests.chaos.oracle import assert_exactly_once, assert_none_open, committed_values


@pytest.mark.parametrize("step", [slow("begun"), "written", "prepared"])
def test_stop_in_the_middle_of_a_batch_leaves_no_transaction_open(scenario, step):
    scenario.add_files(2)
    with scenario.driver(step, stop_when=step) as driver:
        before = len(driver.log_text)
        driver.finish()
        said = driver.log_text[before:]
    assert_none_open(scenario.bootstrap_servers, scenario.topic)
    # A stop is no failure: no stack of ours, and no line of librdkafka.
    assert "Traceback" not in said
    assert "spark_eos" not in said
    assert not re.search(r"%\d\|", said)
    scenario.run()
    scenario.check()


@pytest.mark.parametrize("step", ["checked", slow("decided"), slow("completed")])
def test_stop_while_the_driver_commits(scenario, step):
    """Spark interrupts its own thread and not the worker, which comes to its end."""
    scenario.add_files(2)
    with scenario.driver(step, stop_when=step) as driver:
        driver.wait_for("stop")  # it begins when the step is reached
        driver.go(step)
        driver.finish()
    assert_none_open(scenario.bootstrap_servers, scenario.topic)
    visible = len(committed_values(scenario.bootstrap_servers, scenario.topic))
    # Whether `abort` or the decision is first, all or none of it is there.
    assert visible in ((0, ROWS_PER_FILE) if step == "checked" else (ROWS_PER_FILE,))
    scenario.run()
    scenario.check()


def test_failed_batch_leaves_no_transaction_open(scenario):
    scenario.add_files(1)
    failing = ["if(value = '77', raise_error('broken row'), value) AS value"]
    with scenario.driver(select=failing) as driver:
        driver.fail("broken row")
    assert_exactly_once(scenario.bootstrap_servers, scenario.topic, [])
    scenario.run()
    scenario.check()


# The same source offsets may give other rows in other partitions: all of the batch is visible.
OTHERWISE = {"partitions": 3, "select": ["concat(value, uuid()) AS value"]}


@pytest.mark.parametrize("again", [slow({}), OTHERWISE], ids=["same", "otherwise"])
def test_batches_that_run_again_after_their_commit_was_deleted_add_nothing(scenario, again):
    scenario.add_files(3)
    scenario.run()
    assert scenario.batches() == [0, 1, 2]
    scenario.forget_commits_from(1)
    scenario.run(**again)
    assert scenario.batches() == [0, 1, 2]
    scenario.check()


def test_checkpoint_with_another_query_id_stops_the_query(scenario):
    """Somebody replaced `metadata`: Spark would run the last batch again, under other ids."""
    scenario.add_files(2)
    scenario.run()
    scenario.forget_commits_from(1)
    (scenario.checkpoint / "metadata").write_text(json.dumps({"id": str(uuid.uuid4())}))
    (scenario.checkpoint / ".metadata.crc").unlink(missing_ok=True)
    with scenario.driver() as driver:
        driver.fail("holds another query")
    scenario.check()


def test_query_whose_log_was_deleted_stops(scenario):
    """It would know of no decision and run the last batch again; Kafka knows that it was one."""
    scenario.add_files(2)
    with scenario.driver("completed") as driver:
        driver.wait_for("completed")
        driver.kill()
    shutil.rmtree(scenario.checkpoint / "transaction_state")
    with scenario.driver() as driver:
        driver.fail("has no batch of query")
    seen = committed_values(scenario.bootstrap_servers, scenario.topic)
    assert_exactly_once(scenario.bootstrap_servers, scenario.topic, scenario.rows[: len(seen)])
    assert len(seen) == ROWS_PER_FILE


def test_edited_checkpoint_that_would_change_a_batch_stops_the_query(scenario):
    """Batch 1 is forgotten altogether, and more input came: its range is another one now."""
    scenario.add_files(2)
    scenario.run()
    seen = committed_values(scenario.bootstrap_servers, scenario.topic)
    scenario.forget_commits_from(0)
    scenario.add_files(1)
    with scenario.driver(files_per_batch=3) as driver:
        driver.fail("NonDeterministicReplayError")
    assert committed_values(scenario.bootstrap_servers, scenario.topic) == seen
