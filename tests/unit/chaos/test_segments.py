"""Transactions and moves of a group, read from bytes as a broker writes them."""

import struct
from types import SimpleNamespace

import pytest

from chaos.cluster import GROUP, INPUT
from chaos.collect import moves_on_disk, on_disk
from chaos.group_moves import moves_in
from chaos.segments import HEADER, transactions_in

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


def varint(number):
    """Zigzag, in one or two bytes."""
    number = number << 1 if number >= 0 else -2 * number - 1
    return bytes([number]) if number < 0x80 else bytes([number & 0x7F | 0x80, number >> 7])


def string(text):
    return struct.pack(">h", len(text)) + text.encode()


def record(delta, key, value):
    fields = varint(0) + varint(delta) + varint(len(key)) + key
    fields += varint(-1) if value is None else varint(len(value)) + value
    body = b"\0" + fields + varint(0)
    return varint(len(body)) + body


def move(delta, partition, offset, *, group=GROUP, topic=INPUT, versions=(1, 3)):
    """A record as coordinators write it; without an offset the one that takes it away."""
    key = struct.pack(">h", versions[0]) + string(group) + string(topic)
    key += struct.pack(">i", partition)
    value = None if offset is None else struct.pack(">hq", versions[1], offset) + b"\0" * 14
    return record(delta, key, value)


def moves(base, *records, attributes=TRANSACTIONAL, producer_id=7):
    return batch(base, len(records), attributes, producer_id, 0, b"".join(records))


def test_moves_of_a_group_count_where_they_stand_when_they_are_committed(tmp_path):
    (tmp_path / "00000.log").write_bytes(
        moves(0, move(0, 0, 100), move(1, 1, 300))
        + moves(2, move(0, 0, 90), producer_id=8)
        + marker(3, 8, 0, kind=1)
        + marker(4, 7, 0, kind=1)
        + moves(5, move(0, 0, 110))
        + marker(6, 7, 1, kind=0)
        + moves(7, move(0, 0, 2**40, versions=(0, 0)), move(1, 1, None), attributes=0)
        + moves(9, move(0, 1, 400, versions=(1, 4)))
    )
    assert moves_in(tmp_path, GROUP, INPUT) == [
        [0, 0, 100],
        [1, 1, 300],
        [2, 0, 90],
        [7, 0, 2**40],
        [8, 1, -1],
    ]


def test_what_is_no_move_of_the_group_is_left_out(tmp_path):
    (tmp_path / "00000.log").write_bytes(
        moves(
            0,
            move(0, 0, 1, group="other"),
            move(1, 0, 2, topic="other"),
            move(2, 0, 3, versions=(2, 3)),  # about the group itself
            attributes=0,
        )
    )
    assert moves_in(tmp_path, GROUP, INPUT) == []


def test_compressed_moves_are_not_passed_over(tmp_path):
    (tmp_path / "00000.log").write_bytes(moves(0, b"?", attributes=1))
    with pytest.raises(ValueError, match="the batch at 0 is compressed"):
        moves_in(tmp_path, GROUP, INPUT)


def test_moves_come_from_the_replica_that_has_most(tmp_path):
    data = moves(0, move(0, 2, 100))
    for name, found in (("behind", data), ("whole", data + marker(1, 7, 0, kind=1))):
        (tmp_path / name).mkdir()
        (tmp_path / name / "00000.log").write_bytes(found)
    cluster = SimpleNamespace(
        partitions_on_disk=lambda _: [4], partition_folders=lambda *_: sorted(tmp_path.iterdir())
    )
    assert moves_on_disk(cluster) == [[4, 0, 2, 100]]
