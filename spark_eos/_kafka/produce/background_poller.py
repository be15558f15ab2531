"""Task worker. Serve a client while its task waits for rows.

What librdkafka has to report lies in a queue until somebody asks, and its statistics never stop:
13 MB a second in a client that writes to a topic of 200 partitions. The rows of a task may be
minutes apart.
"""

import threading
import weakref
from typing import Final, Protocol

_EVERY_S: Final = 0.1


class Servable(Protocol):
    """What is served, from another thread than its owner's."""

    def serve(self) -> None: ...


class BackgroundPoller:
    """Serves from now on until it is told to end, or nobody holds what is served any more."""

    def __init__(self, served: Servable, name: str) -> None:
        self._over = threading.Event()
        self._thread = threading.Thread(
            target=_serve,
            args=(weakref.ref(served), self._over),
            name=f"serving {name}",
            daemon=True,
        )
        self._thread.start()

    def end(self) -> None:
        """Return when nothing is served any more."""
        self._over.set()
        self._thread.join()


def _serve(served: weakref.ref[Servable], over: threading.Event) -> None:
    while not over.wait(_EVERY_S):
        client = served()
        if client is None:
            return
        client.serve()
        del client
