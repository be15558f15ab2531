"""Everything that runs in a run: brokers, input, the query, those who watch. And its end.

`World` is what the faults work on. Whatever happens, `close` ends each process that was started.
"""

import json
import time
from contextlib import ExitStack

from kafka import KafkaAdminClient

import spark_eos
from chaos.clock import WallClock
from chaos.cluster import GROUP, INPUT, OUTPUT, PARTITIONS, Cluster
from chaos.collect import collect, open_transactions, stable_ends
from chaos.disk import LogDisk
from chaos.generator import Generator
from chaos.supervisor import STOP_S, Supervisor
from chaos.wait import within
from chaos.watch import CheckpointWatcher, LiveReader, Sampler

REACH_S = 25.0
FIRST_BATCH_S = 240
# Of every second driver. What nobody ends is not ended by this in time for a reader.
LONG_TIMEOUT_MS = 300_000
FAILURES_AT_START = 3
DRAIN_S = 300
LAST_LOOK_S = 60
POLL_S = 0.05


class NotNow(Exception):  # noqa: N818 - a reason, not a failure
    """There is nobody to whom a fault could happen, or no way to do it here."""


class World:
    """One run's processes."""

    def __init__(self, folder, history, *, rate, transaction_timeout_ms, master):
        self.folder = folder
        self.history = history
        self.transaction_timeout_s = transaction_timeout_ms / 1000
        self._stack = ExitStack()
        self._own = {
            "rate": rate,
            "transaction_timeout_ms": transaction_timeout_ms,
            "master": master,
        }
        self.product = spark_eos.__file__
        self.hits = 0

    def start(self):
        """Up to the first batch that completed."""
        add = self._stack.callback
        self.disk = LogDisk(self.folder / "log")
        add(self.disk.close)
        self.clock = WallClock(self.folder / "clock")
        add(self.clock.close)
        self.cluster = Cluster(self.folder / "kafka", self)
        add(self.cluster.stop)
        self.cluster.start()
        servers = self.cluster.servers
        self.generator = Generator(servers, self._own["rate"])
        add(self.generator.stop)
        self.generator.start()
        self.supervisor = Supervisor(self.folder / "drivers", self._settings, self.history)
        add(self.supervisor.close)
        self.checkpoint = CheckpointWatcher(self.history, self.folder / "checkpoint")
        self.reader = LiveReader(self.history, servers)
        self.sampler = Sampler(self.history, servers)
        self.watchers = [self.checkpoint, self.reader, self.sampler]
        self.supervisor.start()
        for watcher in self.watchers:
            add(watcher.stop)
            watcher.start()
        self._await_first_batch()

    def add(self, kind, **fields):
        """The proxies write through here, so that a fault can wait for a hit."""
        self.hits += 1
        return self.history.add(kind, **fields)

    def finish(self):
        """Drain the input, stop in order, and write down what is there."""
        self.cluster.proxies.calm()
        self.disk.mend()
        self.clock.set(0)
        self.generator.stop()
        wanted = stable_ends(self.cluster.servers, INPUT)
        why = list(self.generator.failures)
        if not within(DRAIN_S, lambda: _reached(self.checkpoint.completed_ends, wanted)):
            why.append(f"it stands at {self.checkpoint.completed_ends} of {wanted}")
        if not self.supervisor.stop():
            why.append("the driver did not stop in order")
        over = time.monotonic()
        final = collect(self.cluster, self.disk.log, self.history)
        why += last_looks(self.sampler, self.reader, over, final)
        for watcher in self.watchers:
            watcher.stop()
        why += [str(watcher.error) for watcher in self.watchers if watcher.error is not None]
        self.history.add("end", drained=not why, why="; ".join(why))

    def close(self):
        self._stack.close()

    # --- for the faults ---

    @property
    def last_completed_at(self):
        return self.checkpoint.last_completed_at

    def driver(self):
        """The one that runs. There is none for a moment when one has ended."""
        driver = self.supervisor.driver
        if not driver.runs:
            raise NotNow(f"driver {driver.number} has just ended")
        return driver

    def driver_that_times_out(self):
        """The one that runs, or the next one: of two, one has transactions that time out soon."""
        driver = self.driver()
        if _times_out_soon(driver.number):
            return driver
        driver.stop()
        if not within(FIRST_BATCH_S, lambda: self._has_a_batch_of_another(driver)):
            raise NotNow(f"no batch of the driver after {driver.number}")
        return self.driver()

    def _has_a_batch_of_another(self, driver):
        now = self.supervisor.driver
        return now is not driver and self.last_completed_at > now.started_at

    def look_after_stop(self, driver, *, in_tasks):
        """Write down which transactions a driver left open that was stopped in order."""
        if within(STOP_S, lambda: not driver.runs):
            rows = open_transactions(self.cluster.servers)
            self.history.add("stopped", driver=driver.number, in_tasks=in_tasks, rows=rows)

    def hold_at(self, driver, step):
        """Wait until a process of the driver stands at a step; returns its pid."""
        reached = driver.failpoints / f"{step}.reached"
        for suffix in ("go", "reached"):
            (driver.failpoints / f"{step}.{suffix}").unlink(missing_ok=True)
        armed = driver.failpoints / f"{step}.armed"
        armed.touch()
        deadline = time.monotonic() + REACH_S
        while not reached.exists():
            if not driver.runs or time.monotonic() > deadline:
                armed.unlink(missing_ok=True)
                self.let_go(driver, step)  # it may have come by just now
                raise NotNow(f"no process of driver {driver.number} came to '{step}'")
            time.sleep(0.01)
        return int(reached.read_text())

    def let_go(self, driver, step):
        (driver.failpoints / f"{step}.go").touch()

    def coordinator(self):
        """The broker that coordinates the transactions of the query's first partition."""
        query_id = json.loads((self.folder / "checkpoint" / "metadata").read_text())["id"]
        name = f"spark-eos-{query_id}-0"
        admin = KafkaAdminClient(bootstrap_servers=self.cluster.servers)
        try:
            return admin.describe_transactions([name])[name].coordinator_id
        except Exception as error:
            raise NotNow(f"no broker says that it coordinates {name}: {error}") from error
        finally:
            admin.close()

    def _settings(self, number, checkpoint=None, log=None):
        timeout_ms = self._own["transaction_timeout_ms"]
        return {
            "servers": self.cluster.proxied_servers,
            "input": INPUT,
            "output": OUTPUT,
            "partitions": PARTITIONS,
            "offsets_per_batch": 20 * self._own["rate"],
            "checkpoint": str(checkpoint or self.folder / "checkpoint"),
            "master": self._own["master"],
            "python": self.clock.python,
            "conf": {"spark.local.dir": str(self.folder / "spark")},
            "options": {
                "group.id": GROUP,
                "transactionLog": str(log or self.disk.log),
                "kafka.transaction.timeout.ms": str(
                    timeout_ms if _times_out_soon(number) else LONG_TIMEOUT_MS
                ),
                "apiTimeoutMs": "20000",
            },
        }

    def _await_first_batch(self):
        """A query that fails before any fault was given is a broken bench, not a finding."""
        deadline = time.monotonic() + FIRST_BATCH_S
        while not self.checkpoint.completed:
            if time.monotonic() > deadline or len(self.supervisor.failures) >= FAILURES_AT_START:
                texts = [text[:2000] for text in self.supervisor.failures]
                raise RuntimeError(f"no batch completed, see {self.folder}/drivers: {texts}")
            time.sleep(POLL_S)


def _times_out_soon(number):
    return number % 2 == 1


def last_looks(sampler, reader, over, rows, timeout=LAST_LOOK_S):
    """Wait until all was sampled once more and the reader has seen all rows; what did not come."""
    places = {(row[0], row[1]) for row in rows}
    missing = []
    if not within(timeout, lambda: sampler.whole_since > over):
        missing.append(f"no whole sample within {timeout} s after the drivers' end")
    if not within(timeout, lambda: reader.places >= places):
        unseen = len(places - reader.places)
        missing.append(f"the reader on the way did not get to {unseen} rows within {timeout} s")
    return missing


def _reached(ends, wanted):
    return bool(ends) and all(ends.get(p, 0) >= offset for p, offset in wanted.items())
