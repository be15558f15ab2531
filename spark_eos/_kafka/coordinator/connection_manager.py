"""Driver. kafka-python's connection manager, tuned; it keeps its last failure."""

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
    # A connection with so many requests in flight refuses the next one. It does not queue it.
    "max_in_flight_requests_per_connection": 100_000,
    "receive_message_max_bytes": 100_000_000,
    "proxy_url": "direct://",  # kafka-python finds `_DirectSocket` by this scheme
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
    """Logs lines about this project's connections at DEBUG: a refused one is no error here."""

    def filter(self, record: logging.LogRecord) -> bool:
        if not _is_own.get():
            return True
        _LOG.debug("%s", record.getMessage())
        return False


for _name in [name for name in logging.root.manager.loggerDict if name.startswith("kafka.")]:
    logging.getLogger(_name).addFilter(_OwnLog())


@contextmanager
def own_log() -> Iterator[None]:
    """Mark what kafka-python logs in this context as about connections of this project."""
    token = _is_own.set(True)
    try:
        yield
    finally:
        _is_own.reset(token)


class _DirectSocket(KafkaNetSocket):  # type: ignore[misc]
    """Uses no proxy. Closes the socket of a failed connection, which kafka-python leaves open."""

    SCHEMES = ("direct",)

    async def sock_connect(self, net: Any, sock: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return await super().sock_connect(net, sock, *args, **kwargs)
        except BaseException:
            sock.close()
            raise


class ConnectionManager(KafkaConnectionManager):  # type: ignore[misc]
    """Keeps the reason of the last failed connection. A refused login ends the bootstrap."""

    last_error: Exception | None = None

    def __init__(self, net: Any, **settings: Any) -> None:
        super().__init__(net, **settings)
        # kafka-python does not pass this setting on, and its default is true.
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
    """Return what came before a hang-up, for example why a broker refused a login: kafka-python
    drops it. The next call reports the hang-up.
    """

    def receive_data() -> _Received:
        data, error = receive()
        return data, None if data else error

    return receive_data
