"""Clean-up deletes old data files of the log. It deletes no file that somebody reads or is about to
commit, and no file that the log did not write.

The files are written now, and clean-up runs hours later by a clock of its own.
"""

import json
import os
import shutil
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from spark_eos._log import Retention, TransactionLog, vacuum
from spark_eos._log.files import FileStore, live_files
from spark_eos._log.record import from_table, to_table
from spark_eos._log.retention import MaintenanceTask, compact, run_maintenance
from spark_eos._log.table import LogTable
from spark_eos._log.vacuum import PAST_SNAPSHOTS, VACUUM_HOURS
from tests.unit.log.builders import OTHER, QUERY, at, decide, row

DATA = Path(__file__).parents[1] / "data"
DAYS = 72.0
# Version 1 of the file stays readable.
STORED_V1 = """
{"version": 1, "snapshots": [{"after": "2026-01-01T00:00:00.000001+00:00",
 "before": "2026-01-01T00:00:01+00:00", "files": ["%s"]}]}
"""


@pytest.fixture
def location(tmp_path: Path) -> str:
    return str(tmp_path / "log")


def opened(location: str) -> LogTable:
    return LogTable(FileStore(location, {}))


def clock(*hours: float) -> Callable[[], datetime]:
    """So many hours ahead: one for each look at the clock, then the last for ever."""
    left = list(hours)
    return lambda: datetime.now(UTC) + timedelta(hours=left.pop(0) if len(left) > 1 else left[0])


def run(location: str, *hours: float) -> None:
    vacuum.vacuum(opened(location), clock(*hours))


def make_old(folder: str, hours: float = DAYS) -> None:
    then = time.time() - hours * 3_600
    for path in Path(folder).rglob("*"):
        os.utime(path, (then, then))


def data_files(location: str) -> set[str]:
    return {path.name for path in Path(location).glob("*.parquet")}


def test_reader_of_an_older_snapshot_has_time_to_read(location: str) -> None:
    """From the removal on, which may come days after the file was written."""
    written = decide(TransactionLog.open(location), range(20))
    make_old(location)
    run(location, 0)
    reader = opened(location)
    compact(opened(location))
    run(location, 3)
    run(location, 3 + VACUUM_HOURS - 0.1)
    assert set(reader.read(reader.live_files())) == set(written)


def test_files_are_deleted_when_their_time_has_passed(location: str) -> None:
    written = decide(TransactionLog.open(location), range(20))
    compact(opened(location))
    assert len(data_files(location)) == 21
    run(location, VACUUM_HOURS + 0.1)
    run(location, 2 * VACUUM_HOURS + 0.2)
    assert len(data_files(location)) == 1
    rows = TransactionLog.open(location).records()
    assert set(from_table(rows)) == set(written)


def test_what_was_committed_since_is_not_deleted(location: str) -> None:
    """The other driver committed when the snapshot of this one was taken already."""
    decide(TransactionLog.open(location), [0])
    table = opened(location)
    written = decide(TransactionLog.open(location), [0], query_id=OTHER)
    make_old(location)
    for hours in (0, VACUUM_HOURS + 0.1):
        vacuum.vacuum(table, clock(hours))
    batch = TransactionLog.open(location).last_batch(OTHER)
    assert batch is not None
    assert set(batch.records) == set(written)


def test_what_another_driver_is_about_to_commit_is_not_deleted(location: str) -> None:
    """It is held up between its file and its commit, or the clock here is ahead by an hour."""
    decide(TransactionLog.open(location), [0])
    store = opened(location).files
    about = store.write(to_table([row(0, at(1), query_id=OTHER)]), level=0).path
    late = VACUUM_HOURS - 0.1
    run(location, late)
    run(location, late + VACUUM_HOURS)
    assert about in data_files(location)
    run(location, late + 2 * VACUUM_HOURS)
    assert about not in data_files(location)


def test_removal_while_the_driver_is_frozen_counts_from_when_it_wakes_up(location: str) -> None:
    """It looks at the clock, is frozen for hours, and then takes the snapshot."""
    decide(TransactionLog.open(location), range(20))
    make_old(location)
    reader = opened(location)
    compact(opened(location))
    run(location, 0, 5)
    run(location, 5.1)
    assert reader.read(reader.live_files())


def test_addition_while_the_driver_is_frozen_is_not_taken_for_a_removal(location: str) -> None:
    """It takes the snapshot, and is frozen for hours before it looks at the clock again."""
    decide(TransactionLog.open(location), [0])
    run(location, -0.1, 5)
    decide(TransactionLog.open(location), range(1, 20))
    reader = opened(location)
    compact(opened(location))
    run(location, 5 + VACUUM_HOURS + 0.1)
    assert reader.read(reader.live_files())


def test_files_of_somebody_else_stay(location: str) -> None:
    decide(TransactionLog.open(location), range(20))
    compact(opened(location))
    own = (data_files(location) - {file.path for file in live_files(DeltaTable(location))}).pop()
    folder = Path(location)
    strange = [
        folder / "notes.txt",
        folder / "report.parquet",
        folder / f"copy-of-{own}",
        folder / f"{own}.bak",
        folder / own.replace("zstd", "snappy"),
        folder / "compacted-1-mine.parquet",
        folder / "part-00000.parquet",
        folder / "below" / own,
        folder / own.replace("part-00000", "part-00001") / "file",
    ]
    for path in strange:
        path.parent.mkdir(exist_ok=True)
        path.write_text("mine")
    make_old(location)
    run(location, 0)
    run(location, VACUUM_HOURS + 0.1)
    assert own not in data_files(location)
    assert [path for path in strange if not path.is_file()] == []


def content(folder: Path) -> dict[str, bytes]:
    files = [path for path in (folder, *folder.rglob("*")) if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def pass_time(location: str, hours: float) -> None:
    """The past snapshots as they look to a driver so many hours later."""
    path = Path(location) / PAST_SNAPSHOTS
    stored = json.loads(path.read_text())
    for snapshot in stored["snapshots"]:
        for name in ("after", "before"):
            then = datetime.fromisoformat(snapshot[name]) - timedelta(hours=hours)
            snapshot[name] = then.isoformat()
    path.write_text(json.dumps(stored))


def test_maintenance_leaves_notes_checkpoints_and_tables_below_the_log_alone(location: str) -> None:
    written = decide(TransactionLog.open(location), range(20))
    compact(opened(location))
    folder = Path(location)
    others = ("notes.txt", "checkpoint", "tables", "another_log")
    (folder / "notes.txt").write_text("restored on Monday")
    for name in ("offsets/0", "commits/0", "metadata"):
        path = folder / "checkpoint" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("v1\n{}")
    for number in range(3):
        numbers = pa.table({"number": [number]})
        write_deltalake(folder / "tables" / "numbers", numbers, mode="overwrite")
    shutil.copytree(DATA / "log_v2" / "table", folder / "another_log")
    before = {name: content(folder / name) for name in others}
    assert all(before.values())
    make_old(location)
    run_maintenance(FileStore(location, {}), [MaintenanceTask.EXPIRE], Retention())
    pass_time(location, VACUUM_HOURS + 0.1)
    run_maintenance(FileStore(location, {}), [MaintenanceTask.EXPIRE], Retention())
    assert len(data_files(location)) == 1, "clean-up deleted nothing"
    assert {name: content(folder / name) for name in others} == before
    assert set(from_table(TransactionLog.existing(location).records())) == set(written)


def test_backlog_is_deleted_in_several_runs(location: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vacuum, "MIN_DELETIONS", 12)
    monkeypatch.setattr(vacuum, "DELETION_LIMIT_S", -1)
    decide(TransactionLog.open(location), range(20))
    compact(opened(location))
    make_old(location)
    left = []
    for hours in (0, 2.1, 2.2, 2.3):
        run(location, hours)
        left.append(len(data_files(location)))
    assert left == [21, 9, 1, 1]


@pytest.mark.parametrize(
    "stored",
    [
        "",
        '{"version": 1, "snap',
        '{"version": 2, "snapshots": []}',
        '{"version": 1, "snapshots": [{"after": "2026-01-01T00:00:00+00:00"}]}',
        "[]",
        STORED_V1.replace("2026", "2126"),
    ],
)
def test_unreadable_memory_of_the_past_deletes_nothing_and_is_replaced(
    location: str, stored: str
) -> None:
    decide(TransactionLog.open(location), range(20))
    compact(opened(location))
    make_old(location)
    (Path(location) / PAST_SNAPSHOTS).write_text(stored)
    run(location, 0)
    assert len(data_files(location)) == 21
    run(location, VACUUM_HOURS + 0.1)
    assert len(data_files(location)) == 1


def test_stored_sample_of_past_snapshots_is_used(location: str) -> None:
    decide(TransactionLog.open(location), range(20))
    compact(opened(location))
    make_old(location, hours=24 * 10_000)
    removed = data_files(location) - {file.path for file in live_files(DeltaTable(location))}
    named = min(removed)
    (Path(location) / PAST_SNAPSHOTS).write_text(STORED_V1 % named)
    run(location, 0)
    assert data_files(location) & removed == {named}


def test_memory_of_the_past_stays_small(location: str) -> None:
    log = TransactionLog.open(location)
    sizes = []
    for number in range(60):
        decide(log, [number])
        run(location, number / 6)
        stored = json.loads((Path(location) / PAST_SNAPSHOTS).read_text())
        sizes.append(len(stored["snapshots"]))
    assert max(sizes) <= VACUUM_HOURS * 2 + 2
    assert TransactionLog.open(location).last_batch_id(QUERY) == 59
