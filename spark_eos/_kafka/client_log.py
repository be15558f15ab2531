"""Every process. Where librdkafka's own lines go: to Python's logging, with whose client it is.

librdkafka warns of much that it mends itself, such as a request that it sends again. What it cannot
mend is raised as an error. So its lines are information here, whatever level librdkafka gives them.
"""

import logging

_LOG = logging.getLogger(__name__)


class ClientLog:
    """The logger of one client. librdkafka hands over its lines when the client is polled."""

    def __init__(self, client: str) -> None:
        self._client = client

    def log(self, level: int, text: str, *values: object) -> None:
        """What confluent calls."""
        _LOG.log(min(level, logging.INFO), f"%s: {text}", self._client, *values)
