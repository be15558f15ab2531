"""The hand-written Metadata request, against answers as a broker sends them."""

from __future__ import annotations

import socket
import struct
from threading import Thread

from spark_eos.testing._embedded.probe import known_brokers, metadata_request, parse_brokers


def _answer(nodes: list[tuple[int, bytes | None]]) -> bytes:
    brokers = b"".join(
        struct.pack(">ih", node, 9)
        + b"127.0.0.1"
        + struct.pack(">i", 20_000 + node)
        + (struct.pack(">h", -1) if rack is None else struct.pack(">h", len(rack)) + rack)
        for node, rack in nodes
    )
    return struct.pack(">iii", 1, 0, len(nodes)) + brokers + b"rest of the answer"


def test_brokers_are_read_with_and_without_a_rack() -> None:
    assert parse_brokers(_answer([(1, None), (2, b"rack-a"), (3, b"")])) == {1, 2, 3}


def test_closed_port_knows_nobody() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    assert known_brokers(port) == set()


def test_port_that_accepts_and_says_nothing_knows_nobody() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert known_brokers(server.getsockname()[1], timeout_s=0.2) == set()


def test_answer_in_pieces_is_put_together() -> None:
    body = _answer([(7, None)])
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(len(metadata_request()))
                for piece in (struct.pack(">i", len(body)), body[:9], body[9:]):
                    connection.sendall(piece)

        thread = Thread(target=serve)
        thread.start()
        assert known_brokers(server.getsockname()[1]) == {7}
        thread.join()
