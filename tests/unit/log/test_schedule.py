"""Maintenance is due when an append passed a multiple, and not otherwise."""

from spark_eos._log.location import table_uri
from spark_eos._log.retention import (
    CHECKPOINT_EVERY,
    CLEAN_LOG_EVERY,
    EXPIRE_EVERY,
    MaintenanceTask,
    Schedule,
)


def test_nothing_is_due_between_two_multiples() -> None:
    schedule = Schedule(0)
    for version in range(1, CHECKPOINT_EVERY):
        assert schedule.due(version) == []
    assert schedule.due(CHECKPOINT_EVERY) == [MaintenanceTask.COMPACT]
    assert schedule.due(CHECKPOINT_EVERY) == []


def test_multiple_that_was_jumped_over_is_still_noticed() -> None:
    assert Schedule(CHECKPOINT_EVERY - 1).due(CHECKPOINT_EVERY + 1) == [MaintenanceTask.COMPACT]


def test_all_tasks_are_due_in_the_order_to_run_them() -> None:
    assert Schedule(EXPIRE_EVERY - 1).due(EXPIRE_EVERY) == [
        MaintenanceTask.EXPIRE,
        MaintenanceTask.COMPACT,
        MaintenanceTask.CLEAN_LOG,
    ]
    assert CLEAN_LOG_EVERY % CHECKPOINT_EVERY == 0


def test_locations_of_all_spellings_are_one_path() -> None:
    for location in ("/a b/log", "file:/a b/log", "file:///a b/log", "file://localhost/a b/log"):
        assert table_uri(location) == "/a b/log"
    assert table_uri("s3://bucket/log") == "s3://bucket/log"
