"""The proxy against a toy server that answers each frame with its correlation id and a count."""

import socket
import struct
import threading
import time
from contextlib import suppress

import pytest

from chaos import proxy
from chaos.proxy import (
    CUT_AFTER,
    CUT_BEFORE,
    DELAY,
    DROP,
    OVERTAKE_S,
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
        self.pause_s = 0.0
        self._connections = []
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        with suppress(OSError):  # wakes up the thread that accepts, which would take one more
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def hang_up(self):
        for connection in self._connections:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

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
            self._connections.append(connection)
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection):
        with connection:
            while (frame := read_frame(connection)) is not None:
                _, _, correlation_id = struct.unpack_from(">hhi", frame)
                self.got.append(correlation_id)
                time.sleep(self.pause_s)
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


def await_held(proxies, api="EndTxn"):
    deadline = time.monotonic() + 5
    while api not in proxies.by_node[1].held and time.monotonic() < deadline:
        time.sleep(0.01)
    assert api in proxies.by_node[1].held


def test_lets_another_of_its_kind_overtake(proxies, connect, toy, hits):
    disturb(proxies, REORDER)
    first, second = connect(), connect()
    began = time.monotonic()
    first.send(END_TXN, 1)
    await_held(proxies)
    assert second.ask(METADATA, 2) == 2
    assert second.ask(END_TXN, 3) == 3
    assert first.answer() == 1
    assert toy.got == [2, 3, 1]
    (hit,) = hits
    assert began <= hit.pop("at") < began + OVERTAKE_S
    assert hit == {"node": 1, "api": "EndTxn", "action": "reorder", "overtaken": True}


def test_of_many_at_once_the_first_is_overtaken_and_none_waits_in_vain(proxies, connect, toy, hits):
    disturb(proxies, REORDER, count=4)
    clients = [connect() for _ in range(3)]
    began = time.monotonic()
    clients[0].send(END_TXN, 1)
    await_held(proxies)
    for number, client in enumerate(clients[1:], 2):
        client.send(END_TXN, number)
    assert clients[0].answer() == 1
    assert time.monotonic() - began < OVERTAKE_S
    assert toy.got[0] != 1
    assert hits[0]["overtaken"]


def test_every_turn_of_a_reorder_has_an_overtaker(proxies, connect, toy, hits):
    disturb(proxies, REORDER, count=2)
    first, second = connect(), connect()
    for number in (1, 3):
        first.send(END_TXN, number)
        await_held(proxies)
        assert second.ask(END_TXN, number + 1) == number + 1
        assert first.answer() == number
    assert toy.got == [2, 1, 4, 3]
    assert [hit["overtaken"] for hit in hits] == [True, True]


def test_answer_to_an_earlier_one_is_no_overtaking(proxies, connect, toy, hits, monkeypatch):
    monkeypatch.setattr(proxy, "OVERTAKE_S", 0.5)
    toy.pause_s = 0.2
    first, second = connect(), connect()
    second.send(END_TXN, 1)
    toy.wait_for(1)
    disturb(proxies, REORDER)
    first.send(END_TXN, 2)
    assert second.answer() == 1
    assert first.answer() == 2
    assert [hit["overtaken"] for hit in hits] == [False]


def test_within_a_connection_the_order_stays(proxies, connect, toy, hits, monkeypatch):
    monkeypatch.setattr(proxy, "OVERTAKE_S", 0.2)
    disturb(proxies, REORDER, count=2)
    client = connect()
    for number in (1, 2, 3):
        client.send(END_TXN, number)
    assert [client.answer() for _ in range(3)] == [1, 2, 3]
    assert toy.got == [1, 2, 3]
    assert [hit["overtaken"] for hit in hits] == [False, False]


def test_one_that_gave_up_waiting_holds_no_other(proxies, connect, toy, hits):
    disturb(proxies, REORDER)
    client = connect()
    client.send(END_TXN, 1)
    await_held(proxies)
    # The toy hangs up, which ends the one that waits as well.
    toy.hang_up()
    deadline = time.monotonic() + 5
    while proxies.by_node[1].held and time.monotonic() < deadline:
        time.sleep(0.01)
    assert proxies.by_node[1].held == {}
    assert [hit["overtaken"] for hit in hits] == [False]


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
