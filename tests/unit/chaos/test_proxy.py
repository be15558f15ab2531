"""The proxy against a toy server that answers each frame with its correlation id and a count."""

import socket
import struct
import threading
import time
from contextlib import suppress

import pytest

from tests.chaos.bench.proxy import (
    CUT_AFTER,
    CUT_BEFORE,
    DELAY,
    DROP,
    REORDER,
    REPEAT,
    Proxies,
    Rule,
)

END_TXN, METADATA = 26, 3


class ToyServer:
    """Remembers the correlation ids that it got, in their order."""

    def __init__(self):
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self.got = []
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        with suppress(OSError):  # wakes up the thread that accepts, which would take one more
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def wait_for(self, *expected, timeout=5):
        deadline = time.monotonic() + timeout
        while self.got != list(expected) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert self.got == list(expected)

    def _accept(self):
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection):
        with connection:
            while (frame := read_frame(connection)) is not None:
                _, _, correlation_id = struct.unpack_from(">hhi", frame)
                self.got.append(correlation_id)
                body = struct.pack(">i", correlation_id) + b"answer"
                connection.sendall(struct.pack(">i", len(body)) + body)


def read_frame(connection):
    try:
        head = connection.recv(4, socket.MSG_WAITALL)
        if len(head) < 4:
            return None
        return connection.recv(struct.unpack(">i", head)[0], socket.MSG_WAITALL)
    except OSError:
        return None


class Client:
    def __init__(self, port):
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._socket.settimeout(5)

    def send(self, api_key, correlation_id):
        body = struct.pack(">hhih", api_key, 4, correlation_id, 3) + b"toy" + b"x" * 70_000
        self._socket.sendall(struct.pack(">i", len(body)) + body)

    def answer(self):
        """The correlation id of the next answer, or None where the connection was cut."""
        frame = read_frame(self._socket)
        return None if frame is None else struct.unpack_from(">i", frame)[0]

    def ask(self, api_key, correlation_id):
        self.send(api_key, correlation_id)
        return self.answer()

    def close(self):
        self._socket.close()


@pytest.fixture
def toy():
    server = ToyServer()
    yield server
    server.close()


@pytest.fixture
def hits():
    return []


@pytest.fixture
def proxies(toy, hits):
    found = Proxies(lambda **hit: hits.append(hit))
    found.open(1, toy.port)
    yield found
    found.close()


@pytest.fixture
def connect(proxies):
    clients = []

    def connect():
        clients.append(Client(proxies.by_node[1].port))
        return clients[-1]

    yield connect
    for client in clients:
        client.close()


def disturb(proxies, action, **more):
    proxies.by_node[1].add_rule(Rule("EndTxn", action, **more))


def test_passes_frames_both_ways(connect, toy):
    client = connect()
    assert [client.ask(END_TXN, number) for number in (7, 8)] == [7, 8]
    assert toy.got == [7, 8]


def test_delays_the_chosen_kind_once(proxies, connect, hits):
    disturb(proxies, DELAY, seconds=1.5)
    client, began = connect(), time.monotonic()
    assert client.ask(METADATA, 1) == 1
    assert time.monotonic() - began < 1.5
    assert client.ask(END_TXN, 2) == 2
    assert time.monotonic() - began >= 1.5
    again = time.monotonic()
    assert client.ask(END_TXN, 3) == 3
    assert time.monotonic() - again < 1.5
    assert hits == [{"node": 1, "api": "EndTxn", "action": "delay"}]


def test_drops_it_and_keeps_the_connection(proxies, connect, toy):
    disturb(proxies, DROP)
    client = connect()
    client.send(END_TXN, 1)
    assert client.ask(END_TXN, 2) == 2
    assert toy.got == [2]


def test_cuts_before_the_server_got_it(proxies, connect, toy):
    disturb(proxies, CUT_BEFORE)
    assert connect().ask(END_TXN, 1) is None
    assert connect().ask(END_TXN, 2) == 2
    assert toy.got == [2]


def test_cuts_after_the_server_got_it(proxies, connect, toy):
    disturb(proxies, CUT_AFTER)
    assert connect().ask(END_TXN, 1) is None
    toy.wait_for(1)


def test_repeats_it_later_from_another_connection(proxies, connect, toy):
    disturb(proxies, REPEAT, seconds=1.0)
    client = connect()
    assert client.ask(END_TXN, 1) == 1
    assert client.ask(END_TXN, 2) == 2
    client.close()
    toy.wait_for(1, 2, 1)


def test_lets_another_of_its_kind_overtake(proxies, connect, toy, hits):
    disturb(proxies, REORDER)
    first, second = connect(), connect()
    first.send(END_TXN, 1)
    deadline = time.monotonic() + 5
    while not hits and time.monotonic() < deadline:
        time.sleep(0.01)
    assert second.ask(METADATA, 2) == 2
    assert second.ask(END_TXN, 3) == 3
    assert first.answer() == 1
    assert toy.got == [2, 3, 1]


def test_stands_still_and_flows_again(proxies, connect, toy):
    client = connect()
    assert client.ask(METADATA, 1) == 1
    proxies.stall(1)
    client.send(METADATA, 2)
    time.sleep(0.2)
    assert toy.got == [1]
    proxies.calm()
    assert client.answer() == 2


def test_calm_forgets_the_rules(proxies, connect):
    disturb(proxies, CUT_BEFORE)
    proxies.calm()
    assert connect().ask(END_TXN, 1) == 1


def test_server_that_is_down_looks_like_a_cut(toy, proxies, connect):
    toy.close()
    assert connect().ask(END_TXN, 1) is None
