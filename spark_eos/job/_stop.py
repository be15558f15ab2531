"""Driver. A clean stop: on SIGTERM or Ctrl-C the running batch ends, then the query stops.

Python and the JVM both take SIGTERM. Under spark-submit the JVM is the parent process, and its own
handler tears down the session in the middle of a batch. See docs/design/jobs.md.
"""

import logging
import signal
import threading
import time
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_LOG = logging.getLogger(__name__)
_LOOK_EVERY_S: Final = 0.01


class Stop:
    """The request to stop a job. A second request does not wait for the batch."""

    def __init__(self) -> None:
        self.at_once = False
        self._requested = threading.Event()

    @property
    def is_requested(self) -> bool:
        """Whether the job is to stop."""
        return self._requested.is_set()

    def request(self) -> None:
        """Stop after the running batch; the second time, at once."""
        self.at_once = self.is_requested
        self._requested.set()

    def wait(self, seconds: float) -> bool:
        """Wait for a request. Return whether there is one."""
        return self._requested.wait(seconds)

    def listen(self) -> None:
        """Take the signals of this process."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self.request())

    def listen_in_jvm(self, spark: "SparkSession") -> None:
        """Take SIGTERM in the JVM too."""
        from pyspark.java_gateway import ensure_callback_server_started

        gateway: Any = spark.sparkContext._gateway
        ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]
        signals = gateway.jvm.sun.misc.Signal
        signals.handle(signals("TERM"), _Handler(self))


class _Handler:
    """The JVM calls this handler through py4j."""

    def __init__(self, stop: Stop) -> None:
        self._stop = stop

    def handle(self, _signal: Any) -> None:
        self._stop.request()

    class Java:
        implements = ("sun.misc.SignalHandler",)


def finish_batch(query: "StreamingQuery", stop: Stop, timeout_s: float) -> None:
    """Stop a query between two batches, or at once when the time is over.

    Spark has no such call. At that time the next batch may have begun, but not passed its plan. It
    runs again after the next start.
    """
    deadline = time.monotonic() + timeout_s
    running = _last_batch(query)
    while query.isActive and query.status["isTriggerActive"] and _last_batch(query) == running:
        if stop.at_once or time.monotonic() >= deadline:
            _LOG.warning("the running batch is given up. It runs again after the next start")
            break
        time.sleep(_LOOK_EVERY_S)
    query.stop()


def _last_batch(query: "StreamingQuery") -> tuple[int, str] | None:
    progress = query.lastProgress
    return None if progress is None else (progress["batchId"], progress["timestamp"])
