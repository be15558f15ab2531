"""What people do to a transaction log outside of the checkpoint, and to one of the two alone."""

import os
import shutil
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Producer
from deltalake import DeltaTable, Field, write_deltalake
from deltalake.exceptions import CommitFailedError
from deltalake.schema import PrimitiveType

from tests.chaos.conftest import slow
from tests.chaos.oracle import assert_exactly_once, assert_none_open, committed_values
from tests.chaos.transactions import end_open_transactions


@pytest.fixture
def outside(scenario):
    """A scenario with its log beside its checkpoint."""
    name_log(scenario, scenario.checkpoint.with_name("log"))
    return scenario


def name_log(scenario, path):
    scenario.log = path
    scenario.options["transactionLog"] = str(path)


def run_with_more(scenario, files=1):
    scenario.add_files(files)
    scenario.run()


def copy(folder, name):
    return shutil.copytree(folder, folder.with_name(name))


def restore(folder, backup):
    shutil.rmtree(folder)
    shutil.copytree(backup, folder)


def refused(scenario, error, *texts, **settings):
    """The query stops with this error, and neither writes nor leaves anything open."""
    before = committed_values(scenario.bootstrap_servers, scenario.topic)
    with scenario.driver(**settings) as driver:
        said = driver.fail(f"errors.{error}: ")
    for text in texts:
        assert text in said, said[:6000]
    assert_none_open(scenario.bootstrap_servers, scenario.topic)
    assert committed_values(scenario.bootstrap_servers, scenario.topic) == before
    return said


def kill_at(scenario, step):
    with scenario.driver(step) as driver:
        driver.wait_for(step)
        driver.kill()


def commits(log):
    return sorted((log / "_delta_log").glob("*.json"))


def test_log_that_is_restored_alone_stops_the_query(outside):
    run_with_more(outside)
    backup = copy(outside.log, "backup")
    run_with_more(outside, files=2)
    newest = copy(outside.log, "newest")
    restore(outside.log, backup)
    outside.add_files(1)
    refused(
        outside,
        "StaleLogError",
        f"the transaction log at {outside.log} ends with batch 0",
        "was restored from a backup, deleted, or copied",
        "Start with the newest checkpoint and log of this query",
    )
    restore(outside.log, newest)
    outside.run()
    outside.check()


def test_checkpoint_that_is_restored_alone_adds_nothing(outside):
    """The batches run again, with the same files."""
    run_with_more(outside)
    backup = copy(outside.checkpoint, "backup")
    run_with_more(outside, files=3)
    restore(outside.checkpoint, backup)
    outside.run()
    outside.check()
    run_with_more(outside)
    outside.check()


def test_checkpoint_that_is_restored_alone_and_reads_other_files_stops(outside):
    """Batch 1 has two files now. That of the log had one, with the same source offset."""
    run_with_more(outside)
    backup = copy(outside.checkpoint, "backup")
    run_with_more(outside, files=3)
    newest = copy(outside.checkpoint, "newest")
    restore(outside.checkpoint, backup)
    outside.add_files(2)
    refused(
        outside,
        "NonDeterministicReplayError",
        "batch 1 of query",
        "or other files. The checkpoint was changed by hand, or is older than the transaction log",
        "Restore the newest checkpoint of this query",
        files_per_batch=2,
    )
    restore(outside.checkpoint, newest)
    outside.run()
    outside.check()


@pytest.mark.slow
def test_checkpoint_that_is_restored_alone_and_reads_a_topic(outside, topic):
    source = topic(1)
    producer = Producer({"bootstrap.servers": outside.bootstrap_servers})

    def run(rows, **settings):
        for _ in range(rows):
            outside.rows.append(str(len(outside.rows)))
            producer.produce(source, outside.rows[-1])
        assert producer.flush(30) == 0
        outside.run(read_topic=source, **settings)

    run(200)
    backup = copy(outside.checkpoint, "backup")
    run(400)
    newest = copy(outside.checkpoint, "newest")
    restore(outside.checkpoint, backup)
    run(0)
    outside.check()
    restore(outside.checkpoint, backup)
    settings = {"read_topic": source, "offsets_per_batch": 300}
    refused(outside, "NonDeterministicReplayError", "another range of source offsets", **settings)
    restore(outside.checkpoint, newest)
    run(100)
    outside.check()


def test_log_may_be_moved_and_copied_while_the_query_is_stopped(outside):
    run_with_more(outside)
    name_log(outside, outside.log.rename(outside.log.with_name("moved")))
    run_with_more(outside)
    outside.check()
    original, duplicate = outside.log, copy(outside.log, "copy")
    outside.add_files(1)
    name_log(outside, original.with_name("new"))
    refused(outside, "StaleLogError", f"log at {outside.log} has no batch of query")
    name_log(outside, duplicate)
    outside.run()
    outside.check()
    name_log(outside, original)
    outside.add_files(1)
    refused(outside, "StaleLogError", f"log at {original} ends with batch 1")
    name_log(outside, duplicate)
    outside.run()
    outside.check()


@pytest.mark.slow
@pytest.mark.parametrize("committed", [(), (0, 2)], ids=["lost", "torn"])
def test_checkpoint_that_is_restored_alone_while_a_decided_batch_is_not_whole(outside, committed):
    """Only its lost partitions are written, and nothing of the batch between."""
    run_with_more(outside)
    backup = copy(outside.checkpoint, "backup")
    run_with_more(outside)
    outside.add_files(1)
    kill_at(outside, "decided")
    end_open_transactions(outside, commit_partitions=committed)
    restore(outside.checkpoint, backup)
    outside.run()
    outside.check()


@contextmanager
def another(scenario, topic):
    """A second query on the same log: the same input, to a topic of its own."""
    seen = (scenario.checkpoint, scenario.topic)
    scenario.checkpoint, scenario.topic = scenario.checkpoint.with_name("other"), topic
    yield
    scenario.checkpoint, scenario.topic = seen


def test_log_of_two_queries_that_is_restored_stops_both(outside, topic):
    second = topic(3)
    run_with_more(outside)
    with another(outside, second):
        outside.run()
    backup = copy(outside.log, "backup")
    run_with_more(outside)
    with another(outside, second):
        outside.run()
    newest = copy(outside.log, "newest")
    restore(outside.log, backup)
    outside.add_files(1)
    refused(outside, "StaleLogError", "ends with batch 0")
    with another(outside, second):
        refused(outside, "StaleLogError", "ends with batch 0")
    restore(outside.log, newest)
    outside.run()
    outside.check()
    # A checkpoint that is deleted makes a new query, which is no concern of the other one.
    shutil.rmtree(outside.checkpoint)
    with another(outside, second):
        outside.run()
        outside.check()
        run_with_more(outside)
        outside.check()
    outside.run()
    seen = sorted(committed_values(outside.bootstrap_servers, outside.topic).values())
    assert seen == sorted([*outside.rows, *outside.rows[: -len(outside.rows) // 4]])


def delete_all(table):
    table.delete()


def delete_some(table):
    table.delete("batch_id >= 1")


def overwrite(table):
    write_deltalake(table, table.to_pyarrow_table().slice(0, 0), mode="overwrite")


def edit_a_row(table):
    table.update(updates={"transaction_status": "'CompleteAbort'"}, predicate="batch_id >= 1")


def optimize(table):
    table.optimize.compact()


def vacuum(table):
    table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)


def vacuum_all(table):
    table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False, full=True)


def add_a_column(table):
    table.alter.add_columns(Field("note", PrimitiveType("string")))


def go_back(table):
    table.restore(table.version() - 2)


REFUSED_BY_DELTA = (delete_all, delete_some, overwrite, edit_a_row)
HARMLESS = (optimize, vacuum, vacuum_all, add_a_column, go_back)


def test_delta_commands_on_the_log_while_the_query_is_stopped(outside):
    """When nothing is pending: the log is append-only, and what it must know is in its commits."""
    run_with_more(outside, files=3)
    for command in REFUSED_BY_DELTA:
        with pytest.raises(CommitFailedError, match="append-only"):
            command(DeltaTable(str(outside.log)))
    for command in HARMLESS:
        before = DeltaTable(str(outside.log)).version()
        command(DeltaTable(str(outside.log)))
        assert command in (vacuum, vacuum_all) or DeltaTable(str(outside.log)).version() > before
        run_with_more(outside)
        outside.check()


def lose_commits(log):
    shutil.rmtree(log / "_delta_log")


def lose_the_first_commit(log):
    commits(log)[0].unlink()


def lose_the_newest_commit(log):
    commits(log)[-1].unlink()


def empty_the_newest_commit(log):
    commits(log)[-1].write_text("")


def cut_the_newest_commit(log):
    text = commits(log)[-1].read_text()
    commits(log)[-1].write_text(text[: len(text) // 2])


def cut_off_the_newest_commit(log):
    """Behind its first line."""
    lines = commits(log)[-1].read_text().splitlines(keepends=True)
    commits(log)[-1].write_text(lines[0])


BROKEN = {
    lose_commits: ("CorruptLogError", "has lost its folder _delta_log"),
    lose_the_first_commit: ("CorruptLogError", "of its folder _delta_log were deleted or changed"),
    cut_the_newest_commit: ("CorruptLogError", "of its folder _delta_log were deleted or changed"),
    lose_the_newest_commit: ("StaleLogError", "ends with batch 1"),
    empty_the_newest_commit: ("StaleLogError", "ends with batch 1"),
    cut_off_the_newest_commit: ("StaleLogError", "ends with batch 1"),
}


def test_log_that_has_lost_a_part_stops_the_query(outside):
    run_with_more(outside, files=3)
    outside.add_files(1)
    original = outside.log
    for harm, (error, text) in BROKEN.items():
        # Another path, so that no process has it open.
        name_log(outside, copy(original, harm.__name__))
        harm(outside.log)
        refused(outside, error, f"the transaction log at {outside.log}", text)
    name_log(outside, original)
    outside.run()
    outside.check()


@pytest.mark.slow
def test_log_that_is_broken_under_a_session(outside):
    """The processes of the session have it open."""
    for harm in (lose_commits, cut_the_newest_commit, shutil.rmtree):
        run_with_more(outside)
        newest = copy(outside.log, harm.__name__)
        harm(outside.log)
        outside.add_files(1)
        refused(outside, "CorruptLogError", f"the transaction log at {outside.log}")
        shutil.rmtree(outside.log, ignore_errors=True)
        newest.rename(outside.log)
        outside.run()
        outside.check()


def move_away(log):
    log.rename(log.with_name("away"))


def replace_by_an_empty_folder(log):
    move_away(log)
    log.mkdir()


@pytest.mark.parametrize("step", ["completed", slow("prepared")])
@pytest.mark.parametrize("harm", [move_away, slow(replace_by_an_empty_folder)])
def test_log_that_goes_away_while_the_query_runs(outside, step, harm):
    """And comes back."""
    run_with_more(outside)
    outside.add_files(2)
    with outside.driver(step) as driver:
        driver.wait_for(step)
        harm(outside.log)
        driver.go(step)
        driver.fail(f"CorruptLogError: the transaction log at {outside.log} was deleted or moved")
    refused(outside, "StaleLogError", "has no batch of query")
    shutil.rmtree(outside.log)
    outside.log.with_name("away").rename(outside.log)
    outside.run()
    outside.check()


@contextmanager
def immutable(folder):
    """Nobody may create a file in it, not even root."""
    if os.geteuid():
        lock, unlock = ("chmod", "a-w"), ("chmod", "u+w")
    else:
        lock, unlock = ("chattr", "+i"), ("chattr", "-i")
    if subprocess.run([*lock, folder], check=False, timeout=10).returncode:
        pytest.skip("root may write everywhere here")
    try:
        yield
    finally:
        subprocess.run([*unlock, folder], check=True, timeout=10)


def test_log_that_cannot_be_written(outside):
    run_with_more(outside)
    outside.add_files(1)
    with immutable(outside.log / "_delta_log"), outside.driver() as driver:
        said = driver.fail(f"to the transaction log at {outside.log}: Generic LocalFileSystem")
    assert "Nothing was decided. Start the query again when the log can be written" in said
    # It could not log an abort, so it has left its transactions to the next start.
    outside.run()
    outside.check()


def test_path_where_no_log_can_be(outside):
    run_with_more(outside)
    outside.add_files(1)
    good, place = outside.log, outside.log.with_name("file")
    place.write_text("")
    name_log(outside, place)
    refused(outside, "OptionError", f"the transaction log '{place}' is a file")
    name_log(outside, Path("/proc/log"))
    refused(outside, "RetriableError", "the transaction log at /proc/log cannot be created")
    name_log(outside, good)
    outside.run()
    outside.check()


def unlink(folder, number):
    (folder / str(number)).unlink()
    (folder / f".{number}.crc").unlink(missing_ok=True)


def test_files_of_the_checkpoint_that_are_deleted(outside):
    run_with_more(outside, files=3)
    unlink(outside.checkpoint / "commits", 2)
    outside.run()
    assert outside.batches() == [0, 1, 2]
    run_with_more(outside)
    outside.check()
    # Spark's own errors: the first takes it for two queries on one checkpoint.
    outside.add_files(1)
    seen = committed_values(outside.bootstrap_servers, outside.topic)
    newest = copy(outside.checkpoint, "newest")
    unlink(outside.checkpoint / "offsets", 3)
    with outside.driver() as driver:
        driver.fail("CONCURRENT_STREAM_LOG_UPDATE")
    restore(outside.checkpoint, newest)
    (outside.checkpoint / "metadata").unlink()
    (outside.checkpoint / ".metadata.crc").unlink(missing_ok=True)
    with outside.driver() as driver:
        driver.fail("STREAMING_CHECKPOINT_MISSING_METADATA_FILE")
    assert committed_values(outside.bootstrap_servers, outside.topic) == seen
    restore(outside.checkpoint, newest)
    outside.run()
    outside.check()


@pytest.mark.slow
def test_decided_batch_whose_rows_the_log_has_lost(outside):
    """Put back, they complete it."""
    run_with_more(outside)
    outside.add_files(1)
    kill_at(outside, "decided")
    newest = outside.log.with_name("newest")
    newest.mkdir()
    for file in outside.log.glob("*.parquet"):
        file.rename(newest / file.name)
    with outside.driver() as driver:
        said = driver.fail(f"CorruptLogError: the transaction log at {outside.log} has lost its")
    assert "Put it back, from a backup for example" in said
    for file in newest.iterdir():
        file.rename(outside.log / file.name)
    decided = DeltaTable(str(outside.log)).version()
    DeltaTable(str(outside.log)).restore(1)
    with outside.driver() as driver:
        driver.fail("and its rows were taken out of the transaction log at")
    DeltaTable(str(outside.log)).restore(decided)
    outside.run()
    outside.check()


@pytest.mark.slow
def test_optimized_log_still_completes_a_decided_batch(outside):
    run_with_more(outside, files=3)
    outside.add_files(1)
    kill_at(outside, "decided")
    for command in (optimize, vacuum, add_a_column):
        command(DeltaTable(str(outside.log)))
    run_with_more(outside)
    outside.check()


@pytest.mark.slow
@pytest.mark.parametrize("step", ["moved", "completed"])
@pytest.mark.parametrize("harm", [lose_the_newest_commit, empty_the_newest_commit])
def test_decision_that_is_cut_off_the_log_stops_the_query(outside, step, harm):
    """Kafka has the move of it."""
    run_with_more(outside)
    outside.add_files(1)
    kill_at(outside, step)
    harm(outside.log)
    with outside.driver() as driver:
        driver.fail("StaleLogError")


@pytest.mark.slow
@pytest.mark.parametrize("harm", [lose_the_newest_commit, empty_the_newest_commit])
def test_decision_that_is_cut_off_before_anything_was_done_by_it_is_taken_again(outside, harm):
    run_with_more(outside)
    outside.add_files(1)
    kill_at(outside, "decided")
    harm(outside.log)
    outside.run()
    outside.check()


@pytest.mark.slow
def test_checkpoint_that_is_deleted_while_a_decided_batch_is_pending(outside):
    """A new query does not know the old one: readers wait for its time-out, and then go on."""
    outside.options["kafka.transaction.timeout.ms"] = "8000"
    outside.add_files(2)
    kill_at(outside, "decided")
    shutil.rmtree(outside.checkpoint)
    outside.run()
    deadline = time.monotonic() + 60
    while len(committed_values(outside.bootstrap_servers, outside.topic)) < len(outside.rows):
        assert time.monotonic() < deadline
    assert_exactly_once(outside.bootstrap_servers, outside.topic, outside.rows)
