"""A log that a person has broken: each way is told in words, and none is taken for a new log."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from deltalake import DeltaTable, Field
from deltalake.schema import PrimitiveType

from spark_eos._log import TransactionLog
from spark_eos.errors import CorruptLogError, OptionError, RetriableError
from tests.unit.log.builders import QUERY, decide


@pytest.fixture
def location(tmp_path: Path) -> str:
    location = str(tmp_path / "log")
    decide(TransactionLog.open(location), range(3))
    return location


def commits(location: str) -> list[Path]:
    return sorted((Path(location) / "_delta_log").glob("*.json"))


def lose_all_commits(location: str) -> None:
    shutil.rmtree(Path(location) / "_delta_log")


def lose_the_first_commit(location: str) -> None:
    commits(location)[0].unlink()


def cut_the_newest_commit(location: str) -> None:
    text = commits(location)[-1].read_text()
    commits(location)[-1].write_text(text[: len(text) // 2])


@pytest.mark.parametrize(
    ("harm", "text"),
    [
        (lose_all_commits, r"has lost its folder _delta_log.*Put the whole folder back"),
        (lose_the_first_commit, r"cannot be opened: .*metadata.*Put the whole folder back"),
        (
            cut_the_newest_commit,
            r"cannot be opened: .*whilst reading string\. Files.*Put the whole",
        ),
    ],
)
def test_log_that_has_lost_commits_is_no_new_log(
    location: str, harm: Callable[[str], None], text: str
) -> None:
    harm(location)
    left = sorted(Path(location).rglob("*"))
    with pytest.raises(CorruptLogError, match=text) as caught:
        TransactionLog.open(location)
    assert location in str(caught.value)
    assert "\n" not in str(caught.value)
    assert sorted(Path(location).rglob("*")) == left


@pytest.mark.parametrize("harm", [lose_all_commits, cut_the_newest_commit, shutil.rmtree])
def test_log_that_is_broken_after_it_was_opened(location: str, harm: Callable[[str], None]) -> None:
    log = TransactionLog.open(location)
    harm(location)
    with pytest.raises(CorruptLogError, match=f"the transaction log at {location} "):
        log.refresh()


def test_newer_commit_that_is_broken(location: str) -> None:
    """The one that was seen last is still there."""
    log = TransactionLog.open(location)
    decide(TransactionLog.open(location), [3])
    cut_the_newest_commit(location)
    with pytest.raises(CorruptLogError, match="cannot be opened"):
        log.refresh()


def test_data_file_that_is_gone_is_named(location: str) -> None:
    files = sorted(Path(location).glob("*.parquet"))
    for file in files:
        file.unlink()
    with pytest.raises(CorruptLogError, match="has lost its data file 'part-") as caught:
        TransactionLog.open(location).last_batch(QUERY)
    assert any(file.name in str(caught.value) for file in files)


def test_column_that_a_person_has_added_stays_empty(location: str) -> None:
    log = TransactionLog.open(location)
    DeltaTable(location).alter.add_columns([Field("note", PrimitiveType("string"))])
    log.refresh()
    decide(log, [3])
    decide(TransactionLog.open(location), [4])
    rows = DeltaTable(location).to_pyarrow_table().to_pylist()
    assert {row["note"] for row in rows} == {None}
    assert {row["batch_id"] for row in rows} == {0, 1, 2, 3, 4}


def test_path_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("")
    with pytest.raises(OptionError, match=r"is a file\. Set the option transactionLog to a folder"):
        TransactionLog.open(str(tmp_path / "log"))


def test_folder_that_cannot_be_created() -> None:
    with pytest.raises(RetriableError, match=r"/proc/log cannot be created: .*Let the driver's"):
        TransactionLog.open("/proc/log")
