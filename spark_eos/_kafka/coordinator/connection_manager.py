"""Driver. kafka-python's connection manager: tuned, with a log and a memory for failures."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

from kafka import errors
from kafka.net.inet import KafkaNetSocket
from kafka.net.manager import KafkaConnectionManager

TUNING: Final[dict[str, Any]] = {
    "reconnect_backoff_ms": 10,
    "reconnect_backoff_max_ms": 50,
    # A connection with this many requests under way refuses the next one instead of queueing it.
    "max_in_flight_requests_per_connection": 100_000,
    "receive_message_max_bytes": 100_000_000,
    "proxy_url": "direct://",  # by this name kafka-python finds `_DirectSocket`
}
LOGIN_REFUSED: Final = (
    errors.SaslAuthenticationFailedError,
    errors.UnsupportedSaslMechanismError,
    errors.IllegalSaslStateError,
)
_Received = tuple[bytes, Exception | None]

_LOG = logging.getLogger(__name__)
_is_own: ContextVar[bool] = ContextVar("is_own", default=False)


class _OwnLog(logging.Filter):
    """Takes kafka-python's lines about the connections of this project: it logs each refused
    connection as an error, which is an answer like any other here. Whoever else uses kafka-python
    keeps its lines.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        if not _is_own.get():
            return True
        _LOG.debug("%s", record.getMessage())
        return False


for _name in [name for name in logging.root.manager.loggerDict if name.startswith("kafka.")]:
    logging.getLogger(_name).addFilter(_OwnLog())


@contextmanager
def own_log() -> Iterator[None]:
    """What kafka-python logs in here is about connections of this project."""
    token = _is_own.set(True)
    try:
        yield
    finally:
        _is_own.reset(token)


class _DirectSocket(KafkaNetSocket):  # type: ignore[misc]
    """No proxy; closes the socket of a connection that was not made, which kafka-python leaves."""

    SCHEMES = ("direct",)

    async def sock_connect(self, net: Any, sock: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return await super().sock_connect(net, sock, *args, **kwargs)
        except BaseException:
            sock.close()
            raise


class ConnectionManager(KafkaConnectionManager):  # type: ignore[misc]
    """Remembers why the last connection was not made; a refused login ends the bootstrap."""

    last_error: Exception | None = None

    def __init__(self, net: Any, **settings: Any) -> None:
        super().__init__(net, **settings)
        # The manager does not pass this setting on, and its default is true.
        self.cluster.config["allow_auto_create_topics"] = False

    def get_connection(self, node_id: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(self.last_error, LOGIN_REFUSED) and not self.cluster.brokers():
            raise self.last_error
        known = node_id in self._conns
        connection = super().get_connection(node_id, *args, **kwargs)
        if not known:
            connection.init_future.add_errback(self._remember)
        return connection

    async def _build_transport(self, *args: Any, **kwargs: Any) -> Any:
        transport = await super()._build_transport(*args, **kwargs)
        transport._sock_recv = _data_before_end(transport._sock_recv)
        return transport

    def _remember(self, error: Exception) -> None:
        self.last_error = error


def _data_before_end(receive: Callable[[], _Received]) -> Callable[[], _Received]:
    """Let what came before a hang-up be read; the hang-up is met again at the next call.

    kafka-python drops it. A broker that refuses a login says why and hangs up, one that is stopped
    answers what it has and hangs up: both answers were lost more often than not.
    """

    def receive_data() -> _Received:
        data, error = receive()
        return data, None if data else error

    return receive_data
