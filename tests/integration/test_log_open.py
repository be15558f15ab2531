"""Opening the log: created once, never on top of something else, never by an older release."""

import json
import shutil
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from threading import Barrier

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from spark_eos._log import Retention, TransactionLog
from spark_eos._log.files import FileStore
from spark_eos._log.location import VERSION_PROPERTY, log_exists
from spark_eos._log.record import SCHEMA, to_rows, to_table
from spark_eos._log.retention import MaintenanceTask, run_maintenance
from spark_eos._protocol.transactions.transaction import RECORD_VERSION
from spark_eos.errors import ForeignTableError, LogVersionError, OptionError
from tests.unit.log.builders import QUERY, at, decide, row

DATA = Path(__file__).parents[1] / "data"
VERSIONS = (1, 2)
AGES = timedelta(days=36500)


def sample(version: int, folder: Path) -> str:
    """A copy of the log that a release with this version of the records wrote."""
    shutil.copytree(DATA / f"log_v{version}" / "table", folder / "log")
    return str(folder / "log")


@pytest.mark.parametrize("version", VERSIONS)
def test_stored_sample_is_readable(version: int, tmp_path: Path) -> None:
    log = TransactionLog.open(sample(version, tmp_path))
    expected = json.loads((DATA / f"log_v{version}" / "expected.json").read_text())
    rows = json.loads(json.dumps(to_rows(to_table(log.current())), default=str))
    # A later version may add columns; those of an earlier one keep their values.
    known = [{name: row[name] for name in expected["current"][0]} for row in rows]
    assert known == expected["current"]
    last = log.last_batch(expected["query_id"])
    assert last is not None
    assert (last.batch_id, len(last.pending)) == (expected["last_batch_id"], expected["pending"])


def test_older_log_gets_the_new_columns_with_the_first_append(tmp_path: Path) -> None:
    location = sample(1, tmp_path)
    version = DeltaTable(location).version()
    log = TransactionLog.open(location)
    older = log.records().num_rows
    assert DeltaTable(location).version() == version, "to open a log changed it"
    written = decide(log, [3])
    assert {field.name for field in DeltaTable(location).schema().fields} == set(SCHEMA.names)
    run_maintenance(
        FileStore(location, {}), list(MaintenanceTask), Retention(history=AGES, idle=AGES)
    )
    rows = TransactionLog.open(location).records().to_pylist()
    assert len(rows) == older + len(written)
    named = {(row["version"], row["cluster_id"]) for row in rows}
    assert named == {(1, None), (RECORD_VERSION, "cluster-1")}


def test_queries_on_an_older_log_get_through_while_it_gets_its_columns(tmp_path: Path) -> None:
    location = sample(1, tmp_path)
    logs = [TransactionLog.open(location) for _ in range(4)]
    barrier = Barrier(len(logs))

    def run(number: int) -> None:
        barrier.wait()
        decide(logs[number], range(3), query_id=str(uuid.UUID(int=number)))

    with ThreadPoolExecutor(len(logs)) as pool:
        for future in [pool.submit(run, number) for number in range(len(logs))]:
            future.result()
    log = TransactionLog.open(location)
    assert [log.last_batch_id(str(uuid.UUID(int=n))) for n in range(len(logs))] == [2] * len(logs)


def test_new_log_needs_only_the_oldest_protocol_of_delta(tmp_path: Path) -> None:
    TransactionLog.open(str(tmp_path / "log"))
    protocol = DeltaTable(tmp_path / "log").protocol()
    assert (protocol.min_reader_version, protocol.min_writer_version) == (1, 2)
    assert protocol.reader_features is None


def test_log_is_the_same_by_path_and_by_uri(tmp_path: Path) -> None:
    folder = tmp_path / "a b"
    decide(TransactionLog.open(f"file:{folder}"), [0])
    for location in (str(folder), f"file://{folder}", f"file:{folder}"):
        assert TransactionLog.open(location).last_batch_id(QUERY) == 0


def test_creators_at_the_same_time_end_with_one_table(tmp_path: Path) -> None:
    for attempt in range(10):
        location = str(tmp_path / str(attempt))
        barrier = Barrier(4)

        def create(where: str = location, start: Barrier = barrier) -> int:
            start.wait()
            return TransactionLog.open(where).version

        with ThreadPoolExecutor(4) as pool:
            versions = [future.result() for future in [pool.submit(create) for _ in range(4)]]
        assert versions == [0] * 4
        assert DeltaTable(location).version() == 0


def test_foreign_table_is_refused(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"colour": ["red"]}))
    with pytest.raises(ForeignTableError, match=r"colour.*option transactionLog") as caught:
        TransactionLog.open(str(tmp_path))
    assert str(tmp_path) in str(caught.value)
    assert DeltaTable(tmp_path).version() == 0


def test_folder_with_other_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(ForeignTableError, match=r"notes\.txt.*option transactionLog"):
        TransactionLog.open(str(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_table_of_a_newer_release_is_refused(tmp_path: Path) -> None:
    location = str(tmp_path / "log")
    TransactionLog.open(location)
    DeltaTable(location).alter.set_table_properties(
        {VERSION_PROPERTY: "4"}, raise_if_not_exists=False
    )
    with pytest.raises(LogVersionError, match=r"version 4.*Upgrade spark-eos"):
        TransactionLog.open(location)


def test_rows_of_a_newer_release_are_refused_without_reading_them(tmp_path: Path) -> None:
    location = str(tmp_path / "log")
    decide(TransactionLog.open(location), [0, 1])
    newer = to_table([replace(row(7, at(1)), version=4)])
    write_deltalake(location, newer, mode="append")
    for file in tmp_path.glob("log/*.parquet"):
        file.write_bytes(b"unreadable")
    with pytest.raises(LogVersionError, match=r"version 4.*Upgrade spark-eos"):
        TransactionLog.open(location)


def test_log_that_may_still_come_is_told_from_a_path_that_holds_something_else(
    tmp_path: Path,
) -> None:
    """And looking creates nothing."""
    location = tmp_path / "checkpoint" / "log"
    assert not log_exists(str(location), {})
    assert not location.parent.exists()
    (location / "_delta_log").mkdir(parents=True)  # a creator at work
    assert not log_exists(str(location), {})
    TransactionLog.open(str(location))
    assert log_exists(f"file:{location}", {})
    with pytest.raises(OptionError, match="checkpoint' is no Delta table"):
        log_exists(str(location.parent), {})
