"""What happened in a run, as one JSON line per event, so that a run can be judged again.

Append-only, and flushed line by line: a bench that is killed leaves a history that ends early, not
a damaged one. Every event has `at` (monotonic, for durations) and `wall` (for people and logs).

| kind | fields |
|---|---|
| run | seed, command, nemeses: {name: text}, bounds, setting: {name: text}, product |
| input | rows: [partition, offset, key, value], what the generator's topic holds |
| fault | phase (start, end, skipped), id, name, target (of an end: as it came out), detail |
| frame | node, api, action: one request that the proxy interfered with; of a reorder, overtaken |
| driver | phase (start, end), number, pid, outcome (ended and killed: as it was asked to, failed:
otherwise), text |
| batch | id, start, end (monotonic), ends: {input partition: end offset} |
| seen | reader (live, final), rows: [partition, offset, key, value] of the output topic |
| offsets | asked (monotonic, before the request), partitions: {output partition: [last stable
offset, end offset]} |
| group | asked (monotonic, before the request), partitions: {input partition: offset} |
| transactions | rows: [partition, first, last, producer id, epoch, outcome], one per stretch of
records that one transaction wrote in a row, from the brokers' disks |
| group_transactions | the same of the topic that holds the group's offsets |
| group_moves | rows: [partition of that topic, offset there, input partition, offset of the group],
committed moves in the order of the log |
| decisions | rows: [batch, transactional id, producer id, epoch, status], oldest first |
| open | rows: [transactional id, state], what the coordinators still list at the end |
| stopped | driver, in_tasks (whether tasks ran), rows: the same, right after a stop in order |
| end | drained, why |
"""

import json
import threading
import time
from pathlib import Path


class History:
    """The record of one run. Threads share it."""

    def __init__(self, path, echo=lambda _: None):
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self._file = path.open("w", encoding="utf-8")
        self._lock = threading.Lock()
        self._echo = echo

    def add(self, kind, **fields):
        """Write one event down; returns its monotonic time."""
        event = {"kind": kind, "at": time.monotonic(), "wall": time.time(), **fields}
        line = json.dumps(event, separators=(",", ":"))
        with self._lock:
            if not self._file.closed:
                self._file.write(line + "\n")
                self._file.flush()
        self._echo(event)
        return event["at"]

    def close(self):
        with self._lock:
            self._file.close()


def load(path):
    """The events of a stored run, in the order of their times."""
    lines = Path(path).read_text(encoding="utf-8").splitlines()
    events = []
    for number, line in enumerate(lines, 1):
        try:
            events.append(json.loads(line))
        except ValueError:
            if number != len(lines):  # only the last line can be half written
                raise
    return sorted(events, key=lambda event: event["at"])
