"""Planner and commit worker. What a worker keeps from batch to batch: the log and the coordinator.

A speed-up and nothing else: Spark reuses these processes while a query is busy and lets them die
when it is idle. The log is kept per query id, so a checkpoint that was deleted and made anew at
the same place, which gets a new id, does not meet the snapshot of the old table.
"""

from spark_eos.kafka.client_config import ClientConfig
from spark_eos.kafka.coordinator import CoordinatorClient
from spark_eos.log import TransactionLog
from spark_eos.options import WriteOptions
from spark_eos.options.sink import STREAMING
from spark_eos.recovery.checkpoint import Checkpoint
from spark_eos.recovery.ownership import Ownership

_logs: dict[tuple[str, str], TransactionLog] = {}
_coordinators: dict[ClientConfig, CoordinatorClient] = {}


def transaction_log(location: str, query_id: str, checkpoint: str | None = None) -> TransactionLog:
    """The log at its newest version. `checkpoint` is where a streaming query has its own."""
    key = (location, query_id)
    log = _logs.pop(key, None)
    if log is None:
        log = TransactionLog.open(location, checkpoint=checkpoint)
    else:
        log.refresh()
    _logs[key] = log  # only now: a log that failed to refresh is opened anew the next time
    return log


def ownership(options: WriteOptions, query_id: str, log: TransactionLog) -> Ownership:
    """The claim of this driver on a query."""
    location = options.checkpoint_location if isinstance(options, STREAMING) else None
    return Ownership(
        query_id=query_id,
        prefix=options.transactional_id_prefix,
        largest_mark=options.transaction_timeout_ms,
        acknowledge=options.acknowledge,
        config=options.client,
        log=log,
        coordinator=coordinator_client(options.client),
        checkpoint=None if location is None else Checkpoint(location),
    )


def coordinator_client(config: ClientConfig) -> CoordinatorClient:
    """A client whose connections are warm after the first batch."""
    if config not in _coordinators:
        _coordinators[config] = CoordinatorClient(config)
    return _coordinators[config]
