"""A transaction that times out means that its batch runs again, never that rows are lost."""

import time

import pytest

from tests.chaos.oracle import assert_none_open, committed_values, open_partitions
from tests.chaos.transactions import end_open_transactions


@pytest.fixture
def short(scenario):
    """Transactions that live for 8 seconds: enough for a batch on a busy machine."""
    scenario.options["kafka.transaction.timeout.ms"] = "8000"
    scenario.add_files(2)
    return scenario


def wait_for_time_out(scenario, timeout=40):
    deadline = time.monotonic() + timeout
    while open_partitions(scenario.bootstrap_servers, scenario.topic):
        assert time.monotonic() < deadline, "the coordinator did not time the transactions out"
        time.sleep(0.2)


@pytest.mark.slow
def test_time_out_before_the_decision_fails_the_batch_and_decides_nothing(short):
    with short.driver("prepared") as driver:
        driver.wait_for("prepared")
        wait_for_time_out(short)
        driver.go("prepared")
        driver.fail("TransactionLostError")
    assert not committed_values(short.bootstrap_servers, short.topic)
    short.run()
    short.check()


@pytest.mark.slow
def test_time_out_between_the_check_and_the_decision_is_found_and_mended(short):
    with short.driver("checked") as driver:
        driver.wait_for("checked")
        wait_for_time_out(short)
        driver.go("checked")
        driver.fail("TransactionLostError")
    short.run()
    short.check()


@pytest.mark.slow
def test_time_out_after_the_decision_while_the_job_is_down_is_written_again(short):
    with short.driver("decided") as driver:
        driver.wait_for("decided")
        driver.kill()
    wait_for_time_out(short)
    assert not committed_values(short.bootstrap_servers, short.topic)
    short.run()
    short.check()


def test_torn_batch_gets_only_its_lost_partitions_written(scenario):
    """Decided; two transactions are committed, two are lost, and the driver is dead."""
    scenario.add_files(2)
    with scenario.driver("decided") as driver:
        driver.wait_for("decided")
        driver.kill()
    end_open_transactions(scenario, commit_partitions={0, 2})
    assert 0 < len(committed_values(scenario.bootstrap_servers, scenario.topic)) < 200
    scenario.run()
    scenario.check()


@pytest.mark.slow
def test_torn_batch_with_other_rows_stops_the_query(scenario):
    """The same, but the query is not deterministic: it must not guess."""
    scenario.add_files(1)
    random_value = ["concat(value, '-', cast(rand() as string)) AS value"]
    with scenario.driver("decided", select=random_value) as driver:
        driver.wait_for("decided")
        driver.kill()
    end_open_transactions(scenario, commit_partitions={0, 2})
    seen = committed_values(scenario.bootstrap_servers, scenario.topic)
    with scenario.driver(select=random_value) as driver:
        driver.fail("NonDeterministicReplayError")
    assert committed_values(scenario.bootstrap_servers, scenario.topic) == seen
    assert_none_open(scenario.bootstrap_servers, scenario.topic)
