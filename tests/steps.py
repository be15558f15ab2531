"""The steps of a batch, as Spark's processes take them: each finds its session by its options."""

from types import SimpleNamespace

from spark_eos._options import batch_write_options
from spark_eos._session import Session, session_of
from spark_eos._sink.driver.plan import plan
from spark_eos._sink.task.write import write_partition
from spark_eos._sink.writer import BatchWriter, StreamWriter


def plan_batch(options):
    return plan(session_of(options))


def commit_batch(options, messages, batch_id):
    StreamWriter(options).commit(messages, batch_id)


def abort_batch(options, messages, batch_id, sink_partitions):
    StreamWriter(options).abort(with_failed(messages, sink_partitions), batch_id)


def plan_write(options):
    return plan(session_of(options))


def write_task(options, task, recovered, rows):
    return write_partition(session_of(options), task, recovered, rows)


def commit_write(options, messages):
    _writer(options, messages).commit(messages)


def abort_write(options, messages, sink_partitions):
    _writer(options, messages).abort(with_failed(messages, sink_partitions))


def with_failed(messages, sink_partitions):
    """Spark passes None for a task that failed."""
    return [*messages, *[None] * (sink_partitions - len(messages))]


def _writer(options, messages):
    recovered = messages[0].recovered if messages else None
    return BatchWriter(options, recovered, "r")


def session_with(coordinator, query_id, config=None, log=None, options=None):
    """A session that asks this coordinator and no other, of a batch write if nothing else is said.

    `log` is the location of its log; it is open then.
    """
    given = {"kafka.bootstrap.servers": "127.0.0.1:1", "topic": "t"}
    if log is not None:
        given |= {"transactionLog": str(log), "txnAppId": "a", "txnVersion": "0"}
    options = options or batch_write_options(given)
    cluster = SimpleNamespace(coordinator=coordinator, config=config or options.client)
    session = Session(options, query_id, cluster)
    if log is not None:
        session.newest_log()
    return session
