"""Driver. Sends requests to brokers, with the parts of kafka-python that are not public.

kafka-python carries every transaction request of the wire protocol, with TLS and SASL, but no
public interface sends one. Only `wire`, `connection_manager` and `messages` know how; a unit test
names every attribute that they rely on. What this module adds:

- The loop is driven by the caller and only while it waits: no thread, nothing runs between calls.
- Every wait ends with the deadline. kafka-python itself has waits without a limit: a TLS handshake,
  a name lookup, a request that is queued behind a connection that never opens.
- A connection's failure is returned. kafka-python logs it, and forgets that a login was refused.
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

# A broker that stopped without closing its connections gets this long, then the request is asked
# again: its coordinators may live elsewhere by now. Every request here may be repeated.
ATTEMPT_S: Final = 3.0
# One bootstrap server that swallows packets must not use up the deadline: try again, maybe another
# one, and give a slow one more time at each turn.
BOOTSTRAP_S: Final = 1.0
BOOTSTRAP_MAX_S: Final = 8.0
# A broker handles the requests of one connection one after the other, and an EndTxn waits for the
# replicas: several connections to each broker let several wait at once.
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
        """Send all at once, each to its node (None: any), and return a response for each.

        Once connected it takes at most `ATTEMPT_S`, and never longer than the deadline.
        """
        if not requests:
            return []
        return self._in_turn(lambda: self._exchange(requests, deadline), len(requests), deadline)

    def node_ids(self, deadline: Deadline) -> TxnResponse:
        """The brokers that the cluster has now, as a list of numbers."""

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
        """The name that the cluster gave to itself, as it told with the list of its brokers."""
        return self._in_turn(lambda: [self._lanes[0].cluster.cluster_id], 1, deadline)[0]

    def close(self) -> None:
        """Close every connection. A later call opens them again."""
        with self._lock, own_log():
            self._drop()

    def _in_turn(
        self, ask: Callable[[], list[Any]], count: int, deadline: Deadline
    ) -> list[TxnResponse]:
        """Do what `ask` does when no other thread does. It gives results or exceptions."""
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
        error = result
        code = ErrorCode.NETWORK_EXCEPTION
        if isinstance(error, errors.KafkaTimeoutError | errors.RequestTimedOutError):
            code = ErrorCode.REQUEST_TIMED_OUT
        elif isinstance(error, errors.IncompatibleBrokerVersion):
            code = ErrorCode.UNSUPPORTED_VERSION
        refused = isinstance(error, LOGIN_REFUSED)
        text = self._config.redact(str(error))
        return TxnResponse(code=code, detail=text, login_refused=refused)

    def _exchange(
        self, requests: Sequence[tuple[int | None, Any]], deadline: Deadline
    ) -> list[Any]:
        self._net.poll(timeout_ms=0)  # notice what was closed since the last call
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
                lane.close(node)  # it may be stuck for good: the next one is a new one
        if all(isinstance(result, Exception) for result in results):
            self._drop()  # perhaps no broker is where it was: start from the bootstrap servers
        return results

    def _wait(self, future: Any, limit_s: float) -> None:
        self._net.poll(timeout_ms=limit_s * 1000, future=future)

    def _bootstrap(self, deadline: Deadline) -> Exception | None:
        """Know the brokers, or say why not. Each turn is made anew: none can be stuck."""
        limit_s = BOOTSTRAP_S
        failure: Exception = errors.KafkaTimeoutError("no time was left")
        while not self._lanes:
            if deadline.passed or isinstance(failure, LOGIN_REFUSED):
                return failure
            if not all(_resolves(s, deadline) for s in self._settings["bootstrap_servers"]):
                failure = errors.KafkaTimeoutError("a bootstrap server's name was not resolved")
                continue
            self._net = NetworkSelector(client_id=self._settings["client_id"])
            self._lanes = [
                ConnectionManager(self._net, **self._settings)
                for _ in range(CONNECTIONS_PER_BROKER)
            ]
            first = self._lanes[0]
            for lane in self._lanes[1:]:
                lane.cluster = first.cluster  # one of them keeps the list of brokers, for all
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
    except Exception as error:  # an unknown node, a refused login, a transport just closed
        return Future().failure(error)


def _all_of(futures: Sequence[Any]) -> Any:
    """A future that is done when all of them are."""
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
    """Whether looking up the host of `host:port` comes to an end in time, found or not.

    The system's own look-up knows no deadline. Its thread may be left behind. What it finds is not
    used: the client looks again by itself, and the connection says so where there is no such host.
    """
    host = server.rpartition(":")[0].strip("[]") or server
    try:
        ipaddress.ip_address(host)
    except ValueError:
        lookup = threading.Thread(target=_look_up, args=(host,), name="lookup", daemon=True)
        lookup.start()
        lookup.join(deadline.remaining_s)
        return not lookup.is_alive()
    return True


def _look_up(host: str) -> None:
    with suppress(OSError):
        socket.getaddrinfo(host, None)
