"""Executors that die while a job runs: one after the other, each in the middle of its work."""

import random
import threading
import time
from contextlib import suppress

PAUSE_S = 0.05
LONGEST_WORK_S = 3.0  # of an executor that has begun, before it is killed


class ExecutorKills(threading.Thread):
    """Kills whichever executor runs Python workers, until it has killed as many as it may."""

    def __init__(self, cluster, limit, seed):
        super().__init__(name="executor-kills", daemon=True)
        self.killed = 0
        self._cluster = cluster
        self._limit = limit
        self._chance = random.Random(seed)
        self._ended = threading.Event()

    def run(self):
        begun = {}
        while self.killed < self._limit and not self._ended.wait(PAUSE_S):
            for executor in self._cluster.executors():
                if self._cluster.python_workers(executor):
                    until = time.monotonic() + self._chance.uniform(0, LONGEST_WORK_S)
                    begun.setdefault(executor, until)
                if time.monotonic() > begun.get(executor, float("inf")):
                    with suppress(ProcessLookupError):  # it ended by itself
                        self._cluster.kill(executor)
                        self.killed += 1
                    del begun[executor]
                    break

    def end(self):
        self._ended.set()
        self.join(10)
