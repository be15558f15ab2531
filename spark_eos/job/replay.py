"""Driver. Before a replay: the checks of both transaction logs."""

from collections.abc import Mapping

from spark_eos._log import TransactionLog
from spark_eos._log.location import log_exists
from spark_eos._options import BatchWriteOptions, batch_options, batch_write_options
from spark_eos._session import read_session_of
from spark_eos._source.batch_offsets import plan_ranges
from spark_eos._source.filters import Pushed


def check_micro_batches(options: Mapping[str, str]) -> None:
    """Raise unless each micro-batch of a read with these options can be read."""
    plan_ranges(read_session_of(batch_options(options)), Pushed())


def has_written(sink: Mapping[str, str], application: str) -> bool:
    """Whether the log of a batch sink has the application."""
    options = batch_write_options({**sink, "txnAppId": application, "txnVersion": "0"})
    if not isinstance(options, BatchWriteOptions) or options.transaction_log is None:
        return False  # a write without a log is remembered nowhere
    log = options.transaction_log
    return log_exists(log, {}) and TransactionLog.existing(log).knows(options.query_id)
