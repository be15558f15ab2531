"""What is read of Spark's checkpoint, in each version of its files."""

import json
from pathlib import Path

import pytest

from spark_eos._checkpoint.checkpoint import Checkpoint
from spark_eos.errors import OptionError, RetriableError

METADATA = json.dumps({"batchWatermarkMs": 5, "batchTimestampMs": 1, "conf": {}})
WITH_ID = '{"in": {"0": 7, "1": 9}, "in#fWIRnN7aTcyH2NWUGRV6dQ": {}}'
IN, OTHER, FILES = '{"in":{"0":7,"1":9}}', '{"other":{"0":3}}', '{"logOffset":4}'
ENDS = {("in", 0): 7, ("in", 1): 9, ("other", 0): 3}


@pytest.fixture
def checkpoint(tmp_path):
    (tmp_path / "offsets").mkdir()
    return Checkpoint(str(tmp_path))


def write(checkpoint, *lines, batch_id=0):
    with open(f"{checkpoint.location}/offsets/{batch_id}", "w", encoding="utf-8") as file:
        file.write("\n".join(lines))


@pytest.mark.parametrize(
    "lines",
    [
        ("v1", METADATA, IN, FILES, "-", OTHER),
        ("v2", METADATA, f"0:{IN}", f"files:{FILES}", "2:-", f"orders:{OTHER}"),
        ("v1", METADATA, WITH_ID, FILES, IN, OTHER),
    ],
    ids=["version 1", "version 2, with names", "with the id of a topic"],
)
def test_offsets_of_the_kafka_sources(checkpoint, lines):
    write(checkpoint, *lines)
    assert checkpoint.kafka_offsets(0) == ENDS


def test_two_sources_at_different_offsets_of_a_topic(checkpoint):
    write(checkpoint, "v2", METADATA, f"0:{IN}", '1:{"in":{"0":8}}')
    with pytest.raises(OptionError, match="in-0 and are at different offsets"):
        checkpoint.kafka_offsets(0)


def test_digest_is_that_of_offsets_and_watermark_alone(checkpoint):
    later = json.dumps({"batchWatermarkMs": 5, "batchTimestampMs": 2, "conf": {"a": "b"}})
    moved = json.dumps({"batchWatermarkMs": 6, "batchTimestampMs": 1, "conf": {}})
    for batch_id, lines in enumerate([(METADATA, IN), (later, IN), (moved, IN), (METADATA, OTHER)]):
        write(checkpoint, "v1", *lines, batch_id=batch_id)
    first, same, *others = [checkpoint.input_digest(batch_id) for batch_id in range(4)]
    assert first == same
    assert first not in others
    assert others[0] != others[1]


def test_commit_is_there_or_not(checkpoint, tmp_path):
    assert not checkpoint.has_commit(3)
    (tmp_path / "commits").mkdir()
    for name in ("2", ".3.crc", "3.tmp"):
        (tmp_path / "commits" / name).touch()
    assert not checkpoint.has_commit(3)
    (tmp_path / "commits" / "3").touch()
    assert checkpoint.has_commit(3)


def test_commit_that_spark_has_removed_since(checkpoint, tmp_path):
    """It keeps a hundred, and a query may write nothing for longer than that."""
    (tmp_path / "commits").mkdir()
    for batch_id in range(105, 206):
        (tmp_path / "commits" / str(batch_id)).touch()
    assert checkpoint.has_commit(5)
    assert not checkpoint.has_commit(206)


@pytest.mark.parametrize("name", ["a b", "ü", "a#b", "a%20b"])
@pytest.mark.parametrize("scheme", ["", "file:", "file://"])
def test_location_is_a_path_with_nothing_escaped(tmp_path, scheme, name):
    (tmp_path / name).mkdir()
    (tmp_path / name / "metadata").write_text('{"id":"q"}')
    assert Checkpoint(f"{scheme}{tmp_path / name}").query_id() == "q"


def test_folder_that_is_no_checkpoint(checkpoint):
    with pytest.raises(OptionError, match="no file 'metadata'"):
        checkpoint.query_id()
    with pytest.raises(OptionError, match="no file 'offsets/3'"):
        checkpoint.input_digest(3)


def write_files(checkpoint, name, *numbers, folder="0"):
    """A file of a file source's log: one file was read with each of the numbers."""
    path = Path(checkpoint.location) / "sources" / folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    entries = [{"path": f"/in/{n}.txt", "timestamp": n, "batchId": n} for n in numbers]
    path.write_text("\n".join(["v1", *map(json.dumps, entries)]))


def digest(checkpoint, batch_id, end, before=None, version="v1", name=""):
    write(checkpoint, version, METADATA, f'{name}{{"logOffset":{end}}}', batch_id=batch_id)
    if before is not None:
        line = f'{name}{{"logOffset":{before}}}'
        write(checkpoint, version, METADATA, line, batch_id=batch_id - 1)
    return checkpoint.input_digest(batch_id)


@pytest.mark.parametrize(("version", "name", "folder"), [("v1", "", "0"), ("v2", "in:", "in")])
def test_digest_of_a_file_source_is_that_of_its_files(checkpoint, version, name, folder):
    def now():
        return digest(checkpoint, 4, 4, before=3, version=version, name=name)

    write_files(checkpoint, "3", 3, folder=folder)
    write_files(checkpoint, "4", 4, folder=folder)
    first = now()
    write_files(checkpoint, "3", 3, 7, folder=folder)
    assert now() == first, "a file of the batch before"
    path = Path(checkpoint.location) / "sources" / folder / "4"
    path.write_text(path.read_text().replace("4.txt", "other.txt"))
    assert now() != first, "another file has taken the number"
    path.write_text(path.read_text().replace("other.txt", "4.txt"))
    assert now() == first
    path.write_text(path.read_text().replace('"timestamp": 4', '"timestamp": 5'))
    assert now() != first, "another file has taken the name"


def test_digest_of_version_2_has_no_files(checkpoint):
    write_files(checkpoint, "4", 4)
    digest(checkpoint, 4, 4, before=3)
    older = checkpoint.input_digest_of_version_2(4)
    write_files(checkpoint, "4", 4, 4)
    write_files(checkpoint, "4", 5)
    assert checkpoint.input_digest_of_version_2(4) == older
    assert checkpoint.input_digest(4) == older  # without any file it is the same
    write_files(checkpoint, "4", 4)
    assert checkpoint.input_digest(4) != older


@pytest.mark.parametrize("compacted", ["9.compact", "19.compact"])
def test_digest_of_a_file_source_is_the_same_when_spark_has_compacted_it(checkpoint, compacted):
    write_files(checkpoint, "9", 9)
    first = digest(checkpoint, 9, 9, before=8)
    (Path(checkpoint.location) / "sources" / "0" / "9").unlink()
    assert checkpoint.input_digest(9) != first
    write_files(checkpoint, compacted, *range(20))
    assert checkpoint.input_digest(9) == first


def test_digest_has_every_file_where_a_batch_has_several_numbers(checkpoint):
    """Spark died behind `sources/0/1` and before `offsets/1`, and took 2 into the batch, too."""
    for number in range(3):
        write_files(checkpoint, str(number), number)
    first = digest(checkpoint, 1, 2, before=0)
    write_files(checkpoint, "0", 8)
    assert checkpoint.input_digest(1) == first
    write_files(checkpoint, "1", 8)
    path = Path(checkpoint.location) / "sources" / "0" / "1"
    path.write_text(path.read_text().replace('"batchId": 8', '"batchId": 1'))
    assert checkpoint.input_digest(1) != first


def test_digest_of_the_first_batch_of_a_file_source(checkpoint):
    write_files(checkpoint, "0", 0)
    first = digest(checkpoint, 0, 0)
    path = Path(checkpoint.location) / "sources" / "0" / "0"
    path.write_text(path.read_text().replace("0.txt", "8.txt"))
    assert checkpoint.input_digest(0) != first


def test_what_was_kept_first_stays(checkpoint, tmp_path):
    assert checkpoint.keep("name", "invoices") == "invoices"
    assert checkpoint.keep("name", "renamed") == "invoices"
    (tmp_path / "name").write_text("invo")  # its writer died
    assert checkpoint.keep("name", "renamed") == "renamed"


def test_what_cannot_be_kept_is_an_error(checkpoint, tmp_path):
    (tmp_path / "folder" / "name").mkdir(parents=True)
    with pytest.raises(RetriableError, match="cannot read"):
        checkpoint.keep("folder/name", "invoices")
