"""Transactions read from bytes as a broker writes them."""

from types import SimpleNamespace

from tests.chaos.bench.collect import on_disk
from tests.chaos.bench.segments import HEADER, transactions_in

TRANSACTIONAL, CONTROL = 0x10, 0x30


def batch(base, count, attributes, producer_id, epoch, body=b""):
    head = (
        base,
        49 + len(body),
        0,
        2,
        0,
        attributes,
        count - 1,
        0,
        0,
        producer_id,
        epoch,
        0,
        count,
    )
    return HEADER.pack(*head) + body


def marker(base, producer_id, epoch, kind):
    # length, attributes, two deltas, the key's length (zigzag), version and type
    body = bytes([0x20, 0, 0, 0, 8, 0, 0, 0, kind]) + b"\0" * 8
    return batch(base, 1, CONTROL, producer_id, epoch, body)


def test_interleaved_transactions_end_as_their_own_markers_say(tmp_path):
    (tmp_path / "00000.log").write_bytes(
        batch(0, 2, TRANSACTIONAL, 7, 0)
        + batch(2, 3, TRANSACTIONAL, 7, 0)
        + batch(5, 1, TRANSACTIONAL, 8, 4)
        + batch(6, 1, TRANSACTIONAL, 7, 0)
        + marker(7, 8, 5, kind=0)
        + marker(8, 7, 0, kind=1)
    )
    (tmp_path / "00009.log").write_bytes(
        batch(9, 1, TRANSACTIONAL, 7, 1) + batch(10, 1, 0, -1, -1) + b"half of a batch"
    )
    assert transactions_in(tmp_path) == [
        [0, 4, 7, 0, "commit"],
        [5, 5, 8, 4, "abort"],
        [6, 6, 7, 0, "commit"],
        [9, 9, 7, 1, "open"],
    ]


def test_replica_that_lacks_the_last_marker_is_not_the_one_that_counts(tmp_path):
    data = batch(0, 2, TRANSACTIONAL, 7, 0)
    replicas = [tmp_path / name for name in ("behind", "lacks the marker", "whole")]
    for folder, found in zip(replicas, (b"", data, data + marker(2, 7, 0, kind=1)), strict=True):
        folder.mkdir()
        (folder / "00000.log").write_bytes(found)
    cluster = SimpleNamespace(
        partitions_on_disk=lambda _: [3], partition_folders=lambda *_: replicas
    )
    assert on_disk(cluster, "some") == [[3, 0, 1, 7, 0, "commit"]]
