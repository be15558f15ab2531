"""A loopback proxy in front of a broker that can do to single requests what a network can.

It reads the header of each request just far enough to know its kind, and passes on whole frames.
On command it delays a request, drops it without a word, cuts the connection before or after the
broker got it (the second is the lost answer), repeats it later on a connection of its own (the
delayed duplicate of KAFKA-17754), or holds it until another of its kind has overtaken it. Of a
kind only one is held at a time: the others pass, or they would wait for each other. Within one
connection nothing is reordered: TCP does not do that either. All connections can stand still, as
behind a partition.

It runs in a thread with an event loop of its own. Methods without `async` may be called from any.
"""

import asyncio
import struct
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field

API = {0: "Produce", 22: "InitProducerId", 24: "AddPartitionsToTxn", 26: "EndTxn"}
API |= {25: "AddOffsetsToTxn", 28: "TxnOffsetCommit"}
DELAY, DROP, CUT_BEFORE, CUT_AFTER, REPEAT, REORDER = (
    *("delay", "drop", "cut-before", "cut-after"),
    *("repeat", "reorder"),
)
ACTIONS = (DELAY, DROP, CUT_BEFORE, CUT_AFTER, REPEAT, REORDER)
HOST = "127.0.0.1"
# A frame that waits to be overtaken goes on after this long, or a quiet cluster would hold it.
OVERTAKE_S = 3.0
LOST = (OSError, EOFError, asyncio.IncompleteReadError)


@dataclass(slots=True)
class Rule:
    """What to do with the next `count` requests of a kind."""

    api: str
    action: str
    seconds: float = 0.5
    count: int = 1


class Cut(Exception):  # noqa: N818 - an order, not a failure
    """Both sides of a connection are to be closed."""


class Proxy:
    """One listening port in front of one broker."""

    def __init__(self, name, upstream_port, on_hit=lambda **_: None):
        self.name = name
        self.port = None
        self._upstream_port = upstream_port
        self._on_hit = on_hit
        self._rules = []
        self._lock = threading.Lock()
        self._flowing = None
        self.held = {}  # kind -> the event of the one that waits to be overtaken
        self._tasks = set()
        self._server = None

    async def start(self, port=0):
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._server = await asyncio.start_server(self._serve, HOST, port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self):
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def add_rule(self, rule):
        with self._lock:
            self._rules.append(rule)

    def clear_rules(self):
        with self._lock:
            self._rules.clear()

    async def stall(self):
        """From now on no byte passes, and no connection breaks."""
        self._flowing.clear()

    async def flow(self):
        self._flowing.set()

    async def _serve(self, reader, writer):
        task = asyncio.current_task()
        self._tasks.add(task)
        upstream = None
        try:
            await self._flowing.wait()
            up_reader, upstream = await asyncio.open_connection(HOST, self._upstream_port)
            link = _Link(reader, writer, up_reader, upstream)
            async with asyncio.TaskGroup() as both:
                both.create_task(self._requests(link))
                both.create_task(self._answers(link))
        except* (*LOST, Cut):
            pass
        finally:
            self._tasks.discard(task)
            for side in (writer, upstream):
                if side is not None:
                    side.close()

    async def _requests(self, link):
        while True:
            frame = await _read_frame(link.client_reader)
            await self._flowing.wait()
            api, correlation_id = _header(frame)
            rule = self._take_rule(api)
            if rule is not None:
                await self._disturb(rule, frame, correlation_id, link)
                if rule.action == DROP:
                    continue
            if api in self.held:
                link.overtakes[correlation_id] = self.held[api]
            link.server_writer.write(frame)
            await link.server_writer.drain()

    async def _disturb(self, rule, frame, correlation_id, link):
        if rule.action == REORDER:
            await self._be_overtaken(rule.api)
            return
        self._on_hit(node=self.name, api=rule.api, action=rule.action)
        if rule.action == DELAY:
            await asyncio.sleep(rule.seconds)
        elif rule.action == CUT_BEFORE:
            raise Cut
        elif rule.action == CUT_AFTER:
            link.swallow.add(correlation_id)
        elif rule.action == REPEAT:
            self._spawn(self._repeat(frame, rule.seconds))

    async def _be_overtaken(self, api):
        """Wait for it; whether it came true is told with the hit, at the time when it began."""
        began, overtaken = time.monotonic(), asyncio.Event()
        self.held[api] = overtaken
        try:
            with suppress(TimeoutError):
                await asyncio.wait_for(overtaken.wait(), OVERTAKE_S)
        finally:
            del self.held[api]
            hit = {"node": self.name, "api": api, "action": REORDER}
            self._on_hit(at=began, **hit, overtaken=overtaken.is_set())

    async def _answers(self, link):
        while True:
            frame = await _read_frame(link.server_reader)
            await self._flowing.wait()
            (correlation_id,) = struct.unpack_from(">i", frame, 4)
            # Only when it is answered has it overtaken: a broker serves connections in any order.
            if correlation_id in link.overtakes:
                link.overtakes.pop(correlation_id).set()
            if correlation_id in link.swallow:
                raise Cut
            link.client_writer.write(frame)
            await link.client_writer.drain()

    async def _repeat(self, frame, seconds):
        """The same bytes again, later, from somewhere else; nobody waits for the answer."""
        await asyncio.sleep(seconds)
        writer = None
        with suppress(*LOST):
            reader, writer = await asyncio.open_connection(HOST, self._upstream_port)
            writer.write(frame)
            await writer.drain()
            await asyncio.wait_for(_read_frame(reader), 5)
        if writer is not None:
            writer.close()

    def _take_rule(self, api):
        with self._lock:
            for rule in self._rules:
                if rule.action == REORDER and api in self.held:
                    continue
                if rule.api == api and rule.count > 0:
                    rule.count -= 1
                    return rule
        return None

    def _spawn(self, coroutine):
        task = asyncio.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


class Proxies:
    """One proxy for each broker, all in one thread."""

    def __init__(self, on_hit=lambda **_: None):
        self._on_hit = on_hit
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxies", daemon=True)
        self._thread.start()
        self.by_node = {}

    def open(self, node, upstream_port):
        """Listen for a broker that need not be there yet; returns the port."""
        proxy = Proxy(node, upstream_port, self._on_hit)
        self._run(proxy.start())
        self.by_node[node] = proxy
        return proxy.port

    def stall(self, node):
        self._run(self.by_node[node].stall())

    def flow(self, node):
        self._run(self.by_node[node].flow())

    def calm(self):
        """Disturb nothing any more."""
        for node, proxy in self.by_node.items():
            proxy.clear_rules()
            self.flow(node)

    def close(self):
        for proxy in self.by_node.values():
            self._run(proxy.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def _run(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(10)


@dataclass(slots=True)
class _Link:
    """The two connections that make one."""

    client_reader: asyncio.StreamReader
    client_writer: asyncio.StreamWriter
    server_reader: asyncio.StreamReader
    server_writer: asyncio.StreamWriter
    swallow: set = field(default_factory=set)
    overtakes: dict = field(default_factory=dict)  # correlation id -> the event of another


def _header(frame):
    api_key, _version, correlation_id = struct.unpack_from(">hhi", frame, 4)
    return API.get(api_key, str(api_key)), correlation_id


async def _read_frame(reader):
    """One request or answer, with its length."""
    size = await reader.readexactly(4)
    return size + await reader.readexactly(struct.unpack(">i", size)[0])
