# ruff: noqa: ARG002 - the signatures are those of the driver
"""A program around `df.write`, as far as exactly-once depends on it.

It writes the batches of its workload as versions 0, 1, 2, ... of one application. That a version
was written is known to whoever starts it, in `commits/N`, when the write has returned; a version
that is not known to be written is written again. Spark makes the writer in the planner and sends it
to the tasks and to the commit worker. Where a task or `commit` fails, `abort` is called and the
write fails.
"""

import pickle

from spark_eos._options import batch_write_options
from spark_eos._sink.driver.plan import plan
from spark_eos._sink.writer import BatchWriter
from tests.simulation.clients import session_of
from tests.simulation.driver import Driver, no_file
from tests.simulation.process import port, running

OPTIONS = {"kafka.bootstrap.servers": "simulated:9092", "topic": "out"}
REMEMBERED = {"transactionLog": "/log", "txnAppId": "application"}


class Job(Driver):
    """One run of the program, until all versions are written or one fails."""

    def run(self):
        for version in range(len(self.world.workload.batches)):
            if f"commits/{version}" not in self.world.files:
                self.write(version)

    def write(self, version):
        """One version. Whoever wrote it before has the same rows, or those of a replay."""
        self._options = self.options(version)
        runs_again = f"tried/{version}" in self.world.files
        self.world.files[f"tried/{version}"] = ""
        self.run_batch(version, runs_again=runs_again)

    def options(self, version):
        return batch_write_options(OPTIONS | REMEMBERED | {"txnVersion": str(version)})

    def plan(self):
        with running(self._planner):
            recovered = plan(session_of(self._options))
            writer = BatchWriter(self._options, recovered, self._run_id)
        self._sent = pickle.dumps(writer)
        return writer

    def commit(self, messages, batch_id):
        with running(self._committer):
            pickle.loads(self._sent).commit(messages)

    def abort(self, messages, batch_id):
        with running(self._committer):
            pickle.loads(self._sent).abort(messages)

    def _add_file(self, name, content):
        """Of two that wrote the same version both may say so."""
        with running(self._process("caller")):
            port(f"file {name}", lambda: self.world.files.update({name: content}), no_file)


class ForgetfulJob(Job):
    """The same without a transaction log: nothing is remembered."""

    def options(self, version):
        return batch_write_options(OPTIONS)
