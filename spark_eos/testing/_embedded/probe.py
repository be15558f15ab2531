"""Test process. The brokers that a node knows, by one hand-written Metadata request.

An open port does not prove that a broker serves. The Metadata response lists only the brokers that
are registered and not fenced.
"""

import socket
import struct

from spark_eos.testing._embedded.settings import HOST

METADATA_KEY, METADATA_VERSION = 3, 4
CLIENT_ID = b"spark-eos-probe"


def known_brokers(port: int, timeout_s: float = 1.0) -> set[int]:
    """The node ids of the brokers that the node at this port knows; empty if it is not up."""
    try:
        with socket.create_connection((HOST, port), timeout_s) as connection:
            connection.settimeout(timeout_s)
            connection.sendall(metadata_request())
            (size,) = struct.unpack(">i", _read(connection, 4))
            return parse_brokers(_read(connection, size))
    except OSError:
        return set()


def metadata_request() -> bytes:
    """A Metadata v4 request for no topic: header v1, an empty array, no topic creation."""
    header = struct.pack(">hhih", METADATA_KEY, METADATA_VERSION, 1, len(CLIENT_ID)) + CLIENT_ID
    body = header + struct.pack(">i?", 0, False)
    return struct.pack(">i", len(body)) + body


def parse_brokers(answer: bytes) -> set[int]:
    """The node ids in a Metadata v4 response: correlation id, throttle time, then the brokers."""
    (count,) = struct.unpack_from(">i", answer, 8)
    position, nodes = 12, set()
    for _ in range(count):
        node, host_length = struct.unpack_from(">ih", answer, position)
        position += 6 + host_length + 4
        (rack_length,) = struct.unpack_from(">h", answer, position)
        position += 2 + max(rack_length, 0)
        nodes.add(node)
    return nodes


def _read(connection: socket.socket, size: int) -> bytes:
    parts = b""
    while len(parts) < size:
        part = connection.recv(size - len(parts))
        if not part:
            raise ConnectionError("the connection was closed within a response")
        parts += part
    return parts
