"""What people do to a query: restore a backup, copy a checkpoint, replace a topic, start twice."""

import re
import shutil
from contextlib import contextmanager

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.chaos.conftest import ROWS_PER_FILE, slow
from tests.chaos.oracle import assert_exactly_once, assert_none_open, committed_values

CODE = re.compile(r"acknowledge to '([a-z]+-[a-z]+-[0-9a-f]+)'")
WAIT_S = 30


def copy_of(checkpoint, name):
    """The whole folder, with the log in it."""
    return shutil.copytree(checkpoint, checkpoint.with_name(name))


def restore(checkpoint, backup):
    shutil.rmtree(checkpoint)
    shutil.copytree(backup, checkpoint)


def check_refused(scenario, checkpoint=None, batch=0):
    """The start fails, says why, and writes nothing. Returns what was said."""
    before = committed_values(scenario.bootstrap_servers, scenario.topic)
    with scenario.driver(checkpoint=str(checkpoint or scenario.checkpoint)) as driver:
        said = driver.fail("StaleLogError")
    assert f"ends with batch {batch} of query" in said
    assert "-driver is at epoch" in said
    assert "nothing was written" in said
    assert committed_values(scenario.bootstrap_servers, scenario.topic) == before
    return said


def test_backup_that_is_restored_stops_the_query(scenario):
    scenario.add_files(1)
    scenario.run()
    backup = copy_of(scenario.checkpoint, "backup")
    scenario.add_files(4)
    scenario.run()
    scenario.check()
    newest = copy_of(scenario.checkpoint, "newest")
    restore(scenario.checkpoint, backup)
    check_refused(scenario)
    restore(scenario.checkpoint, newest)
    scenario.add_files(1)
    scenario.run()
    scenario.check()


def test_backup_that_is_restored_after_a_kill_stops_the_query(scenario):
    """The killed attempt has used every id once more: none of them shows a commit."""
    scenario.add_files(1)
    scenario.run()
    backup = copy_of(scenario.checkpoint, "backup")
    scenario.add_files(1)
    scenario.run()
    scenario.add_files(1)
    with scenario.driver("checked") as driver:
        driver.wait_for("checked")
        driver.kill()
    restore(scenario.checkpoint, backup)
    check_refused(scenario)


def test_backup_is_used_all_the_same_where_a_person_says_so(scenario):
    scenario.add_files(1)
    scenario.run()
    backup = copy_of(scenario.checkpoint, "backup")
    scenario.add_files(1)
    scenario.run()
    restore(scenario.checkpoint, backup)
    (code,) = CODE.findall(check_refused(scenario))
    scenario.options["acknowledge"] = code
    scenario.run()
    seen = sorted(committed_values(scenario.bootstrap_servers, scenario.topic).values())
    assert seen == sorted([*scenario.rows, *scenario.rows[ROWS_PER_FILE:]])
    # The option may stay: it is good for that one state.
    scenario.add_files(1)
    scenario.run()
    restore(scenario.checkpoint, backup)
    check_refused(scenario)


def test_copy_of_a_checkpoint_is_refused_when_the_original_has_moved_on(scenario):
    scenario.add_files(1)
    scenario.run()
    duplicate = copy_of(scenario.checkpoint, "copy")
    scenario.add_files(1)
    scenario.run()
    check_refused(scenario, duplicate)
    scenario.add_files(1)
    scenario.run()
    scenario.check()


@pytest.mark.parametrize("step", [slow("planned"), "prepared", slow("checked"), "decided"])
def test_copy_that_is_started_while_the_original_runs_takes_over(scenario, step):
    """The copy is of the very state of the original. The one that was started last goes on."""
    scenario.options["apiTimeoutMs"] = "90000"  # it goes on while the original is held
    scenario.add_files(1)
    scenario.run()
    scenario.add_files(2)
    with scenario.driver(step) as original:
        original.wait_for(step)
        duplicate = copy_of(scenario.checkpoint, "copy")
        with scenario.driver(checkpoint=str(duplicate)) as other:
            other.finish()
        original.go(step)
        said = original.fail()
    assert any(f"{e}Error" in said for e in ("Fenced", "TransactionLost", "StaleLog")), said
    scenario.check()
    # Its own log has an end of batch 1, unless its tasks had been fenced before.
    check_refused(scenario, batch=0 if step == "prepared" else 1)
    scenario.check()


@contextmanager
def replaced_topic(scenario, topic=None, partitions=3):
    """Deletes a topic, that of the sink if none is named, and creates it again at the end."""
    name = topic or scenario.topic
    admin = AdminClient({"bootstrap.servers": scenario.bootstrap_servers})
    admin.delete_topics([name])[name].result(WAIT_S)
    yield
    admin.create_topics([NewTopic(name, partitions)])[name].result(WAIT_S)


def test_topic_that_is_replaced_after_the_decision_stops_the_query(scenario):
    scenario.add_files(2)
    with scenario.driver("decided") as driver:
        driver.wait_for("decided")
        with replaced_topic(scenario):
            pass
        driver.go("decided")
        said = driver.fail("TopicReplacedError")
    assert f"topic '{scenario.topic}' was deleted and created again after batch 0" in said
    assert committed_values(scenario.bootstrap_servers, scenario.topic) == {}
    with scenario.driver() as driver:
        said = driver.fail("TopicReplacedError")
    (code,) = set(CODE.findall(said))
    assert committed_values(scenario.bootstrap_servers, scenario.topic) == {}
    scenario.options["acknowledge"] = code
    scenario.run()
    scenario.check()


def test_topic_that_is_replaced_before_the_decision_gets_the_whole_batch(scenario):
    scenario.add_files(2)
    with scenario.driver("prepared") as driver:
        driver.wait_for("prepared")
        with replaced_topic(scenario):
            pass
        driver.go("prepared")
        said = driver.fail()
    assert scenario.topic in said
    scenario.run()
    scenario.check()


def test_topic_that_is_replaced_between_two_runs_is_written_to(scenario):
    """All that was committed is gone with the topic, and that is what the person wanted."""
    scenario.add_files(1)
    scenario.run()
    with replaced_topic(scenario):
        pass
    scenario.add_files(1)
    scenario.run()
    new = scenario.rows[ROWS_PER_FILE:]
    assert_exactly_once(scenario.bootstrap_servers, scenario.topic, new)


def test_two_drivers_on_one_checkpoint_at_the_same_moment(scenario):
    """One of them goes on to the end, and the other stops."""
    scenario.add_files(3)
    with scenario.driver() as one, scenario.driver() as other:
        outcomes = [driver.outcome() for driver in (one, other)]
    assert any(outcome["ok"] for outcome in outcomes), [o["text"][-2000:] for o in outcomes]
    assert_none_open(scenario.bootstrap_servers, scenario.topic)
    scenario.check()


def test_prefix_of_the_ids_may_be_changed_between_two_runs(scenario):
    scenario.add_files(1)
    scenario.run()
    backup = copy_of(scenario.checkpoint, "backup")
    scenario.options["transactionalIdPrefix"] = "another-prefix"
    scenario.add_files(2)
    scenario.run()
    scenario.check()
    # Whichever prefix it is started with, the backup is older.
    restore(scenario.checkpoint, backup)
    check_refused(scenario)
    scenario.options["transactionalIdPrefix"] = "spark-eos"
    check_refused(scenario)


def test_checkpoint_may_be_moved_to_another_path(scenario):
    scenario.add_files(1)
    scenario.run()
    moved = scenario.checkpoint.with_name("moved")
    scenario.checkpoint.rename(moved)
    scenario.checkpoint = moved
    scenario.add_files(1)
    scenario.run()
    scenario.check()


@pytest.mark.parametrize("step", ["decided", slow("prepared")])
def test_at_least_once_completes_what_exactly_once_has_decided(scenario, step):
    """And the query may go back: the log owes nothing, and says nothing wrong."""
    scenario.add_files(2)
    with scenario.driver(step) as driver:
        driver.wait_for(step)
        driver.kill()
    timeout = scenario.options.pop("kafka.transaction.timeout.ms")
    scenario.options["deliveryGuarantee"] = "at_least_once"
    scenario.run()
    assert_none_open(scenario.bootstrap_servers, scenario.topic)
    seen = committed_values(scenario.bootstrap_servers, scenario.topic)
    assert set(seen.values()) == set(scenario.rows)
    scenario.options = {"kafka.transaction.timeout.ms": timeout, "apiTimeoutMs": "20000"}
    scenario.add_files(1)
    scenario.run()
    assert set(committed_values(scenario.bootstrap_servers, scenario.topic).values()) == set(
        scenario.rows
    )
    assert_none_open(scenario.bootstrap_servers, scenario.topic)


@pytest.mark.slow
def test_decided_batch_is_completed_though_its_source_topic_was_replaced(scenario, topic):
    """By a query without a shuffle. Adaptive execution runs a shuffle before it plans the sink."""
    read_topic = topic(1)
    settings = {"read_topic": read_topic, "partitions": None}
    producer = Producer({"bootstrap.servers": scenario.bootstrap_servers})
    scenario.rows = [str(number) for number in range(100)]
    for number in scenario.rows:
        producer.produce(read_topic, number)
    assert producer.flush(WAIT_S) == 0
    with scenario.driver("decided", **settings) as driver:
        driver.wait_for("decided")
        driver.kill()
    assert committed_values(scenario.bootstrap_servers, scenario.topic) == {}
    with replaced_topic(scenario, read_topic, partitions=1):
        pass
    with scenario.driver(**settings) as driver:
        said = driver.fail("DataLossError")
    assert f"topic '{read_topic}' was deleted and created again" in said
    scenario.check()
    assert_none_open(scenario.bootstrap_servers, scenario.topic)
