"""The moves of a consumer group, read from a broker's disk.

A record of `__consumer_offsets` with a key of version 0 or 1 is a move: the key names the group and
the partition. Its value (versions 0 to 4) starts with the offset; one without a value takes the
offset away. A coordinator that loads the log goes by the order of these records, and leaves out
those whose transaction has no marker that says commit.
"""

import struct
from pathlib import Path

from chaos.segments import CONTROL, ENDS, TRANSACTIONAL, batches, control_type

COMPRESSED = 0x07
MOVES = (0, 1)
TAKEN_AWAY = -1


def moves_in(folder, group, topic):
    """[offset in the log, partition, moved to] of each move that counts in a partition's folder."""
    found, open_now = [], {}
    for path in sorted(Path(folder).glob("*.log")):
        for first, _, attributes, producer_id, _, body in batches(path.read_bytes()):
            if attributes & CONTROL:
                moves = open_now.pop(producer_id, [])
                found += moves if ENDS.get(control_type(body)) == "commit" else []
                continue
            if attributes & COMPRESSED:  # the brokers of the bench do not
                raise ValueError(f"{path}: the batch at {first} is compressed")
            moves = list(_moves(first, body, group, topic))
            if attributes & TRANSACTIONAL:
                open_now.setdefault(producer_id, []).extend(moves)
            else:
                found += moves
    return sorted(found)


def _moves(first, body, group, topic):
    for offset, key, value in records(first, body):
        if key is None or struct.unpack_from(">h", key)[0] not in MOVES:
            continue
        of_group, position = _string(key, 2)
        of_topic, position = _string(key, position)
        if (of_group, of_topic) == (group, topic):
            (partition,) = struct.unpack_from(">i", key, position)
            moved_to = TAKEN_AWAY if value is None else struct.unpack_from(">hq", value)[1]
            yield [offset, partition, moved_to]


def records(first, body):
    """(offset, key, value) of each record of a batch."""
    position = 0
    while position < len(body):
        length, start = _varint(body, position)
        _, inside = _varint(body, start + 1)  # behind the attributes: the timestamp
        delta, inside = _varint(body, inside)
        key, inside = _bytes(body, inside)
        value, _ = _bytes(body, inside)
        yield first + delta, key, value
        position = start + length


def _bytes(body, position):
    length, start = _varint(body, position)
    return (None, start) if length < 0 else (body[start : start + length], start + length)


def _string(data, position):
    (length,) = struct.unpack_from(">h", data, position)
    end = position + 2 + length
    return data[position + 2 : end].decode(), end


def _varint(body, position):
    """A number of variable length, zigzag, and the position behind it."""
    number = shift = 0
    while True:
        byte = body[position]
        number |= (byte & 0x7F) << shift
        position, shift = position + 1, shift + 7
        if not byte & 0x80:
            return (number >> 1) ^ -(number & 1), position
