"""Spark's micro-batch loop around the product's sink, as far as exactly-once depends on it.

`offsets/N` is written before batch N runs, `commits/N` after the sink's `commit` returned; a file
that is there already means another driver, and the query fails. The planner makes the writer, tasks
get it pickled, the commit worker makes one of its own. Where a task or `commit` fails, `abort` is
called and the query fails. A restart begins with the last batch that has no `commits/N`.
"""

import json
import pickle
import uuid
from dataclasses import dataclass, field

import pyarrow as pa

from spark_eos._options import sink_options
from spark_eos._sink.driver.plan import plan
from spark_eos._sink.task.context import Task
from spark_eos._sink.writer import StreamWriter
from tests.simulation.broker import Broker
from tests.simulation.clients import session_of
from tests.simulation.faults import KilledError, Schedule
from tests.simulation.log import Storage
from tests.simulation.oracle import check_no_wrong_row
from tests.simulation.process import Process, port, running

QUERY_ID = "0f9b7a52-64b5-4f0c-9d1e-2a5d0e6f7a81"
GROUP = "g"
TOPICS = {"out": 2, "in": 1}


@dataclass(frozen=True)
class Workload:
    """Rows by batch and sink partition. Where `replayed` is set, a batch runs again with those.

    Ends are sent all at once, and arrive in any order: in that of the partitions, or `backwards`.
    """

    batches: tuple[tuple[tuple[str, ...], ...], ...]
    group: str | None = None
    task_attempts: int = 1
    backwards: bool = False
    replayed: tuple[tuple[tuple[str, ...], ...], ...] | None = None

    def __deepcopy__(self, memo):
        return self

    def values(self, batches):
        """The rows of the first so many batches."""
        return [value for batch in self.batches[:batches] for rows in batch for value in rows]

    def offsets(self, batch_id):
        """Where the batch ends in its source: a source offset for each row, and one a batch."""
        return {("in", 0): batch_id + 1 + len(self.values(batch_id + 1))}


def workload(*batches, **others):
    """Rows by their number: workload((2, 0), (1, 1)) has an empty partition in batch 0."""
    return Workload(
        tuple(
            tuple(tuple(f"b{b}p{p}r{r}" for r in range(rows)) for p, rows in enumerate(batch))
            for b, batch in enumerate(batches)
        ),
        **others,
    )


@dataclass
class World:
    """What outlives a driver: the broker, the log and the checkpoint."""

    workload: Workload
    broker: Broker = field(default_factory=lambda: Broker(TOPICS))
    storage: Storage = field(default_factory=Storage)
    draws: int = 0
    files: dict[str, str] = field(default_factory=lambda: {"metadata": f'{{"id":"{QUERY_ID}"}}'})

    def chance(self):
        """A number below 1, another one each time."""
        self.draws += 1
        return (self.draws * 0.618) % 1

    def names_in(self, folder):
        """The files of a folder of the checkpoint."""
        return [n.partition("/")[2] for n in self.files if n.startswith(f"{folder}/")]


class ConcurrentUpdateError(Exception):
    """Spark's: multiple streaming jobs detected."""


class Driver:
    """One start of the query. `run` returns when all batches are done, or raises as it fails.

    One with the `number` of another one stands for other processes of the same driver.
    """

    def __init__(self, world, *faults, number=None, acknowledge=None):
        self.world = world
        self.schedule = Schedule(*faults)
        options = {
            "kafka.bootstrap.servers": "simulated:9092",
            "checkpointLocation": "/checkpoint",
            "topic": "out",
        }
        if acknowledge is not None:
            options["acknowledge"] = acknowledge
        if world.workload.group:
            options["group.id"] = world.workload.group
        self._options = sink_options(options)
        self._run_id = str(uuid.uuid4())
        self.number = number or uuid.uuid4().int >> 72
        self._planner = self._process("planner")
        self._committer = self._process("commit worker")

    def run(self):
        """All batches that are left."""
        files, batches = self.world.files, len(self.world.workload.batches)
        planned = sum(1 for name in files if name.startswith("offsets/"))
        unfinished = planned > 0 and f"commits/{planned - 1}" not in files
        if unfinished:
            self.run_batch(planned - 1, runs_again=True)
        for batch_id in range(planned, batches):
            self.add_offsets(batch_id)
            self.run_batch(batch_id)

    def add_offsets(self, batch_id):
        """What Spark writes before a batch."""
        offsets = {"in": {"0": self.world.workload.offsets(batch_id)["in", 0]}}
        content = f'v1\n{{"batchWatermarkMs":0}}\n{json.dumps(offsets)}'
        self._add_file(f"offsets/{batch_id}", content)

    def run_batch(self, batch_id, *, runs_again=False):
        """Plan, tasks, `commit`, and what Spark writes behind it."""
        rows = self.world.workload.batches[batch_id]
        if runs_again and self.world.workload.replayed is not None:
            rows = self.world.workload.replayed
        writer = self.plan()
        messages = [None] * len(rows)
        try:
            for partition, values in enumerate(rows):
                messages[partition] = self.run_task(writer, batch_id, partition, values)
            self.commit(messages, batch_id)
        except (Exception, KilledError):
            self.abort(messages, batch_id)
            raise
        if self.world.workload.replayed is None:
            check_no_wrong_row(self.world.broker, self.world.workload, batch_id + 1)
        self._add_file(f"commits/{batch_id}", "v1\n{}")

    def plan(self):
        """The writer that travels to the tasks."""
        with running(self._planner):
            return StreamWriter(self._options, plan(session_of(self._options)))

    def run_tasks(self, batch_id):
        """Plan a batch and run its tasks; returns what they tell the driver."""
        writer = self.plan()
        rows = enumerate(self.world.workload.batches[batch_id])
        return [self.run_task(writer, batch_id, partition, values) for partition, values in rows]

    def commit(self, messages, batch_id):
        """What Spark calls when every task has ended well."""
        with running(self._committer):
            StreamWriter(self._options).commit(messages, batch_id)

    def abort(self, messages, batch_id):
        """What Spark calls after a failure or a stop."""
        with running(self._committer):
            StreamWriter(self._options).abort(messages, batch_id)

    def run_task(self, writer, batch_id, partition, values):
        """A task, tried again as often as Spark is told to."""
        for attempt in range(1, self.world.workload.task_attempts + 1):
            process = self._process("task")
            process.task = Task(
                query_id=QUERY_ID, run_id=self._run_id, batch_id=batch_id, partition=partition
            )
            try:
                with running(process):
                    sent = pickle.loads(pickle.dumps(writer)).write(_arrow(partition, values))
                return pickle.loads(pickle.dumps(sent))
            except (Exception, KilledError):
                if attempt == self.world.workload.task_attempts:
                    raise
        raise AssertionError("a task is tried at least once")

    def _add_file(self, name, content):
        """As Spark's metadata logs do it: only if nobody has written the file."""

        def effect():
            if name in self.world.files:
                raise ConcurrentUpdateError(f"multiple streaming jobs detected: {name}")
            self.world.files[name] = content

        with running(self._process("Spark")):
            port(f"file {name}", effect, no_file)

    def _process(self, role):
        return Process(role=role, world=self.world, schedule=self.schedule, driver=self.number)


def no_file():
    raise OSError("the file system did not answer")


def _arrow(partition, values):
    """Rows that go round the Kafka partitions, so that transactions lie across each other."""
    if values:
        places = [(partition + row) % TOPICS["out"] for row in range(len(values))]
        yield pa.record_batch(
            {"value": pa.array(values), "partition": pa.array(places, pa.int32())}
        )
