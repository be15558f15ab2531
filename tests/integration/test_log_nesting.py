"""A log, a Delta table and a checkpoint that lie one inside of another are refused, all but the log
in its query's own checkpoint. What is looked at on a disk and on an object store differs, so the
rules are tried with both.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from spark_eos._log import TransactionLog
from spark_eos._log.files import FileStore
from spark_eos._log.folders import DiskFolders, Entries, Folders, Place, StoreFolders
from spark_eos._log.nesting import check_above, check_below, check_nesting
from spark_eos._log.retention import clean_log
from spark_eos._log.table import LogTable
from spark_eos.errors import NestedLogError
from tests.unit.log.builders import QUERY, decide

UNREACHABLE = {
    "AWS_ENDPOINT_URL": "http://127.0.0.1:1",
    "AWS_ACCESS_KEY_ID": "id",
    "AWS_SECRET_ACCESS_KEY": "secret",
    "AWS_REGION": "us-east-1",
    "AWS_ALLOW_HTTP": "true",
    "max_retries": "0",
}


@pytest.fixture(params=["disk", "object store"])
def folders(request: pytest.FixtureRequest) -> Folders:
    """An object store's way to look works on a disk too."""
    return DiskFolders() if request.param == "disk" else StoreFolders(FileStore("/", {}))


def make_checkpoint(folder: Path, batches: str = "offsets") -> Path:
    (folder / batches).mkdir(parents=True)
    (folder / batches / "0").write_text("v1\n{}\n{}")
    (folder / "metadata").write_text('{"id":"11111111-1111-4111-8111-111111111111"}')
    return folder


def make_table(folder: Path) -> Path:
    write_deltalake(folder, pa.table({"colour": ["red"]}))
    return folder


def make_log(folder: Path) -> Path:
    decide(TransactionLog.open(str(folder)), range(3))
    return folder


def names_below(folder: Path) -> list[str]:
    return sorted(str(path) for path in folder.rglob("*"))


def refused_above(log: Path, parent: Path, folders: Folders, own: Path | None = None) -> None:
    own_place = Place.of(str(own)) if own is not None else None
    with pytest.raises(NestedLogError, match="lies inside of") as caught:
        check_above(Place.of(str(log)), own_place, folders)
    check_text(str(caught.value), log, parent)


def refused_below(log: Path, inside: Path, folders: Folders) -> None:
    with pytest.raises(NestedLogError, match="contains") as caught:
        check_below(Place.of(str(log)), folders)
    check_text(str(caught.value), log, inside)


def check_text(text: str, *paths: Path) -> None:
    assert [path for path in paths if f"'{path}'" not in text] == []
    for word in ("backup", "transactionLog", "checkpointLocation", "beside"):
        assert word in text


# Above the log


@pytest.mark.parametrize("make", [make_log, make_table])
@pytest.mark.parametrize("below", ["log", "a/b/log"])
def test_log_inside_of_a_table_is_refused(make, below, tmp_path: Path, folders: Folders) -> None:
    table = make(tmp_path / "table")
    refused_above(table / below, table, folders)


def test_hidden_folder_of_a_table_may_hold_a_checkpoint_with_its_log(
    tmp_path: Path, folders: Folders
) -> None:
    """VACUUM leaves it alone. A log does too, but is refused: it holds decisions itself."""
    table, log = make_table(tmp_path / "table"), make_log(tmp_path / "log")
    inside = "_checkpoints/orders/transaction_state"
    check_above(Place.of(str(table / inside)), None, folders)
    refused_above(table / "orders/_checkpoints/log", table, folders)
    refused_above(log / inside, log, folders)


def test_table_is_known_when_its_first_commits_are_gone(
    tmp_path: Path, folders: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spark_eos._log.retention.KEEP_COMMITS", 0)
    table = make_log(tmp_path / "table")
    DeltaTable(table).create_checkpoint()
    clean_log(LogTable(FileStore(str(table), {})))
    assert not (table / "_delta_log" / f"{0:020}.json").exists()
    refused_above(table / "log", table, folders)


@pytest.mark.parametrize("batches", ["offsets", "commits"])
def test_log_inside_of_the_checkpoint_of_another_query_is_refused(
    batches: str, tmp_path: Path, folders: Folders
) -> None:
    other = make_checkpoint(tmp_path / "checkpoint_2", batches)
    own = make_checkpoint(tmp_path / "checkpoint")
    for given in (None, own):
        refused_above(other / "transaction_state", other, folders, given)
        refused_above(other / "a" / "b", other, folders, given)


def test_own_checkpoint_inside_of_something_else_does_not_save_the_log(
    tmp_path: Path, folders: Folders
) -> None:
    other = make_checkpoint(tmp_path / "other")
    own = make_checkpoint(other / "own")
    refused_above(own / "transaction_state", other, folders, own)
    table = make_table(tmp_path / "table")
    own = make_checkpoint(table / "own")
    refused_above(own / "transaction_state", table, folders, own)


def test_refused_log_is_not_created(tmp_path: Path) -> None:
    make_log(tmp_path / "log")
    make_checkpoint(tmp_path / "checkpoint")
    before = names_below(tmp_path)
    for location in (tmp_path / "log" / "inner", tmp_path / "checkpoint" / "log"):
        with pytest.raises(NestedLogError):
            TransactionLog.open(str(location))
    assert names_below(tmp_path) == before


def test_log_in_the_querys_own_checkpoint_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However its location is written."""
    own = make_checkpoint(tmp_path / "my checkpoint")
    (tmp_path / "link").symlink_to(own)
    monkeypatch.chdir(tmp_path)
    spellings = [
        f"{own}",
        f"{own}/",
        f"file:{own}",
        f"file://{own}",
        f"file://localhost{own}/",
        f"{tmp_path}/other/../my checkpoint",
        f"{tmp_path}//./my checkpoint",
        "my checkpoint",
        "./my checkpoint/",
        "link",
    ]
    (tmp_path / "other").mkdir()
    for spelling in spellings:
        for location in (f"{own}/transaction_state", f"{spelling.rstrip('/')}/transaction_state"):
            log = TransactionLog.open(location, checkpoint=spelling)
            assert log.version == 0
    assert names_below(own).count(f"{own}/transaction_state/_delta_log") == 1


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("s3a://bucket/a b/c", "s3://bucket/a b/c/", True),
        ("s3://bucket/a/../b", "s3n://bucket//b", True),
        ("abfss://box@account.example/a", "abfs://box@account.example/a", True),
        ("s3://bucket/a", "s3://other/a", False),
        ("s3://bucket/a", "gs://bucket/a", False),
        ("s3://bucket/a", "/bucket/a", False),
        ("s3://bucket/a", "s3://bucket/A", False),
    ],
)
def test_place_on_an_object_store_is_the_same_in_every_spelling(
    one: str, other: str, same: bool
) -> None:
    assert (Place.of(one) == Place.of(other)) is same
    assert [str(place) for place in Place.of("s3a://bucket/a/b/").parents] == [
        "s3://bucket/a",
        "s3://bucket/",
    ]


# Below the log


@pytest.mark.parametrize("make", [make_log, make_table, make_checkpoint])
@pytest.mark.parametrize("below", ["inner", "a/b/inner", ".hidden/inner", "_delta_log_2"])
def test_log_that_contains_a_table_or_a_checkpoint_is_refused(
    make, below, tmp_path: Path, folders: Folders
) -> None:
    made = make(tmp_path / "made")
    log = make_log(tmp_path / "log")
    inside = log / below
    inside.parent.mkdir(parents=True, exist_ok=True)
    shutil.move(made, inside)
    refused_below(log, inside, folders)


def test_log_that_contains_its_querys_checkpoint_is_refused(tmp_path: Path) -> None:
    log = make_log(tmp_path / "log")
    own = make_checkpoint(log / "checkpoint")
    before = names_below(tmp_path)
    with pytest.raises(NestedLogError) as caught:
        TransactionLog.open(str(log), checkpoint=str(own))
    check_text(str(caught.value), log, own)
    assert names_below(tmp_path) == before


def test_log_in_the_same_folder_as_a_checkpoint_is_refused(
    tmp_path: Path, folders: Folders
) -> None:
    log = make_log(tmp_path / "log")
    make_checkpoint(log)
    with pytest.raises(NestedLogError, match="is also the checkpoint") as caught:
        check_below(Place.of(str(log)), folders)
    check_text(str(caught.value), log)


def test_notes_in_the_folder_of_a_log_are_no_problem(tmp_path: Path, folders: Folders) -> None:
    log = make_log(tmp_path / "log")
    outside = make_table(tmp_path / "table")
    for name in ("notes.txt", "a/metadata", "b/offsets/0", "c/commits/metadata", "d/_delta_log"):
        (log / name).parent.mkdir(parents=True, exist_ok=True)
        (log / name).write_text("mine")
    check_below(Place.of(str(log)), folders)
    check_above(Place.of(str(log)), None, folders)
    (log / "link").symlink_to(outside)
    (log / "loop").symlink_to(log)
    os.mkfifo(log / "pipe")
    assert TransactionLog.open(str(log)).last_batch_id(QUERY) == 2


def test_readers_are_not_checked(tmp_path: Path) -> None:
    log = make_log(tmp_path / "made")
    table = make_table(tmp_path / "table")
    shutil.move(log, table / "log")
    make_checkpoint(table / "log" / "checkpoint")
    assert TransactionLog.existing(str(table / "log")).last_batch_id(QUERY) == 2
    with pytest.raises(NestedLogError):
        TransactionLog.open(str(table / "log"))


# The cost, and what cannot be seen


class CountingFolders(StoreFolders):
    """Keeps what was listed."""

    def __init__(self, store: FileStore) -> None:
        super().__init__(store)
        self.listed: list[Place] = []

    def entries(self, place: Place) -> Entries:
        self.listed.append(place)
        return super().entries(place)


def test_only_the_top_of_the_logs_folder_is_listed(tmp_path: Path) -> None:
    own = make_checkpoint(tmp_path / "checkpoint")
    log = own / "transaction_state"
    decide(TransactionLog.open(str(log), checkpoint=str(own)), range(3))
    folders = CountingFolders(FileStore("/", {}))
    check_above(Place.of(str(log)), Place.of(str(own)), folders)
    check_below(Place.of(str(log)), folders)
    assert folders.listed == [Place.of(str(log))]


# In a process of its own: delta-rs holds Python's lock while it waits for an answer.
DENYING = """
from http.server import BaseHTTPRequestHandler, HTTPServer

class Denying(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(403)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_HEAD = do_GET

server = HTTPServer(("127.0.0.1", 0), Denying)
print(server.server_port, flush=True)
server.serve_forever()
"""


@pytest.fixture
def denying_store() -> Iterator[dict[str, str]]:
    """A store that answers 403 to every request."""
    server = subprocess.Popen(
        [sys.executable, "-c", DENYING],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    with server:
        assert server.stdout is not None
        port = int(server.stdout.readline())
        yield UNREACHABLE | {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}"}
        server.kill()


def test_folder_that_may_not_be_read_is_no_problem(denying_store: dict[str, str]) -> None:
    check_nesting("s3://bucket/a/log", denying_store, None)


def test_store_that_does_not_answer_is_not_taken_for_one_without_nesting() -> None:
    with pytest.raises(OSError, match=r"127\.0\.0\.1:1/"):
        check_nesting("s3://bucket/a/log", UNREACHABLE, None)
