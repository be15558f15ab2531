"""What became of each transaction, read from a broker's disk.

No client in between: record batches in the format v2 have the producer's id and epoch, and a
control batch says commit or abort. This is the ground truth for everything a reader saw.
"""

import struct
from pathlib import Path

# base offset, length, leader epoch, magic, crc, attributes, last offset delta, two timestamps,
# producer id, producer epoch, base sequence, records
HEADER = struct.Struct(">qiibIhiqqqhii")
LENGTH_FROM = 12  # the length counts from behind itself
MAGIC = 2
TRANSACTIONAL, CONTROL = 0x10, 0x20
ENDS = {0: "abort", 1: "commit"}
OPEN = "open"


def transactions_in(folder):
    """[first, last, producer id, epoch, outcome] of each stretch in a partition's folder.

    A marker ends what its producer has open. Its own epoch is not compared: a transaction that was
    fenced or timed out is ended by a marker with a higher one.
    """
    stretches, open_now = [], {}
    for path in sorted(Path(folder).glob("*.log")):
        for first, last, attributes, producer_id, epoch, body in batches(path.read_bytes()):
            if attributes & CONTROL:
                for stretch in open_now.pop(producer_id, []):
                    stretch[4] = ENDS.get(control_type(body), OPEN)
            elif attributes & TRANSACTIONAL:
                stretch = [first, last, producer_id, epoch, OPEN]
                before = stretches[-1] if stretches else None
                if before is not None and before[1:] == [first - 1, producer_id, epoch, OPEN]:
                    before[1] = last
                else:
                    stretches.append(stretch)
                    open_now.setdefault(producer_id, []).append(stretch)
    return stretches


def batches(data):
    """The record batches of a segment; a half-written last one is left out."""
    position = 0
    while position + HEADER.size <= len(data):
        base, length, _, magic, _, attributes, delta, _, _, producer_id, epoch, _, _ = (
            HEADER.unpack_from(data, position)
        )
        end = position + LENGTH_FROM + length
        if magic != MAGIC or length <= 0 or end > len(data):
            return
        body = data[position + HEADER.size : end]
        yield base, base + delta, attributes, producer_id, epoch, body
        position = end


def control_type(body):
    """Of a control record: behind length, attributes, two deltas and the key's length."""
    position = _skip_varint(body, 0) + 1
    for _ in range(3):
        position = _skip_varint(body, position)
    _version, kind = struct.unpack_from(">hh", body, position)
    return kind


def _skip_varint(body, position):
    while body[position] & 0x80:
        position += 1
    return position + 1
