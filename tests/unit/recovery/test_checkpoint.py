"""What is read of Spark's checkpoint, in each version of its files."""

import json

import pytest

from spark_eos.errors import OptionError
from spark_eos.recovery.checkpoint import Checkpoint

METADATA = json.dumps({"batchWatermarkMs": 5, "batchTimestampMs": 1, "conf": {}})
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
    ],
    ids=["version 1", "version 2, with names"],
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
