"""Driver. How far a query is behind its topics, from the progress that Spark reports.

A Python source cannot add metrics to the progress, but the progress has its offsets: the end of the
batch and the end of the topics at planning. This works for Spark's own Kafka source too.

    spark.streams.addListener(LagListener())          # a log line for each batch
    lags_of(query.lastProgress)                        # on demand
"""

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from spark_eos._protocol.offsets.offset_map import kafka_offsets

__all__ = ["LagListener", "SourceLag", "lags_of"]

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SourceLag:
    """The number of offsets behind the latest, for each partition of one source."""

    source: str
    partitions: Mapping[str, int]

    @property
    def min(self) -> int:
        """The lag of the partition that is least behind."""
        return min(self.partitions.values())

    @property
    def max(self) -> int:
        """The lag of the partition that is most behind."""
        return max(self.partitions.values())

    @property
    def avg(self) -> float:
        """The average lag over all partitions."""
        return sum(self.partitions.values()) / len(self.partitions)

    def as_dict(self) -> dict[str, Any]:
        """The lag under the names of the metrics of Spark's own source."""
        return {
            "source": self.source,
            "minOffsetsBehindLatest": self.min,
            "maxOffsetsBehindLatest": self.max,
            "avgOffsetsBehindLatest": self.avg,
            "partitions": dict(self.partitions),
        }


def lags_of(progress: Mapping[str, Any]) -> list[SourceLag]:
    """The lag of each Kafka source in a progress: `query.lastProgress`, or its JSON as a dict."""
    found = []
    for source in progress["sources"]:
        end = kafka_offsets(source.get("endOffset"))
        latest = kafka_offsets(source.get("latestOffset"))
        if end and latest:
            behind = {
                str(partition): max(0, offset - end.get(partition, 0))
                for partition, offset in latest.items()
            }
            found.append(SourceLag(source["description"], behind))
    return found


class LagListener(StreamingQueryListener):
    """Reports the lag of every source after each batch. The default is a log line."""

    def __init__(self, report: Callable[[str, SourceLag], None] | None = None) -> None:
        self._report = report or _log

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        """Report the lag of each source."""
        progress = json.loads(event.progress.json)
        query = progress.get("name") or progress["id"]
        for lag in lags_of(progress):
            self._report(query, lag)

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802
        """Nothing to report yet."""

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
        """Nothing new to report."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        """Nothing more to report."""


def _log(query: str, lag: SourceLag) -> None:
    _LOG.info("%s %s", query, json.dumps(lag.as_dict()))
