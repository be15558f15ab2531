"""Task worker. Polls a producer while its task waits for rows (docs/design/kafka.md)."""

import threading
import weakref
from typing import Final, Protocol

_EVERY_S: Final = 0.1


class Servable(Protocol):
    """A client that another thread may poll."""

    def serve(self) -> None: ...


class BackgroundPoller:
    """Serves a client until `end` is called or the client is dropped."""

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
        """Stop serving. Returns after the thread has ended."""
        self._over.set()
        self._thread.join()


def _serve(served: weakref.ref[Servable], over: threading.Event) -> None:
    while not over.wait(_EVERY_S):
        client = served()
        if client is None:
            return
        client.serve()
        del client
