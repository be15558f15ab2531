"""Driver. Sends requests to brokers through private parts of kafka-python (docs/upstream.md).

tests/unit/kafka/test_kafka_python.py names each of these parts. This module has no thread: the
event loop runs only while a caller waits. Every wait has a limit, which kafka-python does not give
to a TLS handshake, a name lookup, or a request on a connection that never opens. The failure of a
connection is a value. kafka-python logs it, and forgets a refused login.
"""

import ipaddress
import socket
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final

from kafka import errors
from kafka.future import Future
from kafka.net.selector import NetworkSelector

from spark_eos._deadline import Deadline
from spark_eos._kafka.config.client_config import ClientConfig
from spark_eos._kafka.coordinator.connection_manager import (
    LOGIN_REFUSED,
    TUNING,
    ConnectionManager,
    own_log,
)
from spark_eos._kafka.coordinator.messages import TxnResponse
from spark_eos._protocol.transactions.outcome import ErrorCode

# The limit of a request once connected. The coordinators of a frozen broker move meanwhile.
ATTEMPT_S: Final = 3.0
# A bootstrap server that drops packets must not use up the deadline, so further turns may try
# another one. The turns get longer, because a server may only be slow.
BOOTSTRAP_S: Final = 1.0
BOOTSTRAP_MAX_S: Final = 8.0
# A broker handles the requests of one connection one by one, and an EndTxn waits for the replicas.
CONNECTIONS_PER_BROKER: Final = 4


class Wire:
    """Connections to the brokers of one cluster. Callers in several threads take turns."""

    def __init__(self, config: ClientConfig) -> None:
        self._config = config
        self._settings = {**config.kafka_python(), **TUNING}
        self._net: Any = None
        self._lanes: list[Any] = []
        self._lock = threading.Lock()

    def send_all(
        self, requests: Sequence[tuple[int | None, Any]], deadline: Deadline
    ) -> list[TxnResponse]:
        """Send each request to its node (None: any), all together. Returns their responses."""
        if not requests:
            return []
        return self._in_turn(lambda: self._exchange(requests, deadline), len(requests), deadline)

    def node_ids(self, deadline: Deadline) -> TxnResponse:
        """The ids of the brokers that the cluster has now, as `part`."""

        def ask() -> list[Any]:
            cluster = self._lanes[0].cluster
            refreshed = self._net.call_soon_with_future(cluster.refresh_metadata)
            self._wait(refreshed, _attempt_s(deadline))
            if not refreshed.succeeded():
                self._drop()
                return [refreshed.exception or errors.KafkaTimeoutError("no metadata")]
            return [[broker.node_id for broker in cluster.brokers()]]

        return self._in_turn(ask, 1, deadline)[0]

    def cluster_id(self, deadline: Deadline) -> TxnResponse:
        """The id of the cluster, as `part`. It comes with the list of brokers."""
        return self._in_turn(lambda: [self._lanes[0].cluster.cluster_id], 1, deadline)[0]

    def close(self) -> None:
        """Close every connection. A later call opens them again."""
        with self._lock, own_log():
            self._drop()

    def _in_turn(
        self, ask: Callable[[], list[Any]], count: int, deadline: Deadline
    ) -> list[TxnResponse]:
        """Call `ask` while no other thread asks. `ask` returns results or exceptions."""
        results: list[Any] = [errors.KafkaTimeoutError("another thread is asking")] * count
        if self._lock.acquire(timeout=deadline.remaining_s):
            try:
                with own_log():
                    failed = self._bootstrap(deadline)
                    results = [failed] * count if failed is not None else ask()
            finally:
                self._lock.release()
        return [self._response(result) for result in results]

    def _response(self, result: Any) -> TxnResponse:
        if not isinstance(result, Exception):
            return TxnResponse(code=getattr(result, "error_code", ErrorCode.NONE), part=result)
        code = ErrorCode.NETWORK_EXCEPTION
        if isinstance(result, errors.KafkaTimeoutError | errors.RequestTimedOutError):
            code = ErrorCode.REQUEST_TIMED_OUT
        elif isinstance(result, errors.IncompatibleBrokerVersion):
            code = ErrorCode.UNSUPPORTED_VERSION
        text = self._config.redact(str(result))
        return TxnResponse(code=code, detail=text, login_refused=isinstance(result, LOGIN_REFUSED))

    def _exchange(
        self, requests: Sequence[tuple[int | None, Any]], deadline: Deadline
    ) -> list[Any]:
        self._net.poll(timeout_ms=0)  # notices connections that were closed since the last call
        limit_s = _attempt_s(deadline)
        sent: list[tuple[Any, Any, Any]] = []
        taken: Counter[Any] = Counter()
        for wanted, request in requests:
            node = self._lanes[0].least_loaded_node() if wanted is None else wanted
            lane = self._lanes[taken[node] % CONNECTIONS_PER_BROKER]
            taken[node] += 1
            sent.append((lane, node, _send(lane, node, request, limit_s)))
        self._wait(_all_of([future for _, _, future in sent]), limit_s)
        results = [_result(future) for _, _, future in sent]
        for lane, node, future in sent:
            if not future.is_done:
                lane.close(node)  # the connection may never answer again
        if all(isinstance(result, Exception) for result in results):
            self._drop()  # every broker may have moved: start again from the bootstrap servers
        return results

    def _wait(self, future: Any, limit_s: float) -> None:
        self._net.poll(timeout_ms=limit_s * 1000, future=future)

    def _bootstrap(self, deadline: Deadline) -> Exception | None:
        """Learn the brokers, or return why not. Each turn opens new connections."""
        limit_s = BOOTSTRAP_S
        failure: Exception = errors.KafkaTimeoutError("no time was left")
        while not self._lanes:
            if deadline.passed or isinstance(failure, LOGIN_REFUSED):
                return failure
            if not all(_resolves(s, deadline) for s in self._settings["bootstrap_servers"]):
                failure = errors.KafkaTimeoutError("a bootstrap server's name was not resolved")
                continue
            self._net = NetworkSelector(client_id=self._settings["client_id"])
            first, *others = self._lanes = [
                ConnectionManager(self._net, **self._settings)
                for _ in range(CONNECTIONS_PER_BROKER)
            ]
            for lane in others:
                lane.cluster = first.cluster  # the list of brokers is shared
            turn_s = min(limit_s, deadline.remaining_s)
            future = first.bootstrap_async(timeout_ms=turn_s * 1000)
            self._wait(future, turn_s)
            if not future.succeeded():
                failure = first.last_error or future.exception or failure
                self._drop()
            limit_s = min(limit_s * 2, BOOTSTRAP_MAX_S)
        return None

    def _drop(self) -> None:
        for lane in self._lanes:
            lane.close()
        if self._lanes:
            self._net.close()
        self._lanes = []


def _send(lane: Any, node: Any, request: Any, limit_s: float) -> Any:
    try:
        return lane.send(request, node, request_timeout_ms=limit_s * 1000)
    except Exception as error:  # an unknown node, a refused login, a closed transport
        return Future().failure(error)


def _all_of(futures: Sequence[Any]) -> Any:
    """A future that is done when all futures are done."""
    finished = Future()
    missing = len(futures)

    def one_less(_: Any) -> None:
        nonlocal missing
        missing -= 1
        if missing == 0:
            finished.success(None)

    for future in futures:
        future.add_both(one_less)
    return finished


def _attempt_s(deadline: Deadline) -> float:
    return min(ATTEMPT_S, deadline.remaining_s)


def _result(future: Any) -> Any:
    if not future.is_done:
        return errors.KafkaTimeoutError("no answer in time")
    return future.exception if future.exception is not None else future.value


def _resolves(server: str, deadline: Deadline) -> bool:
    """Whether the host's lookup ends in time, found or not. A lookup without end keeps a thread."""
    host = server.rpartition(":")[0].strip("[]") or server
    with suppress(ValueError):
        ipaddress.ip_address(host)
        return True
    lookup = threading.Thread(target=_look_up, args=(host,), name="lookup", daemon=True)
    lookup.start()
    lookup.join(deadline.remaining_s)
    return not lookup.is_alive()


def _look_up(host: str) -> None:
    with suppress(OSError):
        socket.getaddrinfo(host, None)
