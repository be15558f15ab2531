"""Every process. librdkafka's log lines in Python's logging, with the name of the client.

No line is above INFO: librdkafka warns of what it repairs itself, and raises what it cannot.
"""

import logging

_LOG = logging.getLogger(__name__)


class ClientLog:
    """The logger of one client. Lines arrive when the client is polled."""

    def __init__(self, client: str) -> None:
        self._client = client

    def log(self, level: int, text: str, *values: object) -> None:
        """The method that confluent calls."""
        _LOG.log(min(level, logging.INFO), f"%s: {text}", self._client, *values)
