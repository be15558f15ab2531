"""Planner and commit worker. What a worker keeps from batch to batch: the log and the coordinator.

A speed-up and nothing else: Spark reuses these processes while a query is busy and lets them die
when it is idle. The log is kept per query id, so a checkpoint that was deleted and made anew at
the same place, which gets a new id, does not meet the snapshot of the old table.
"""

from spark_eos.kafka.client_config import ClientConfig
from spark_eos.kafka.coordinator import CoordinatorClient
from spark_eos.log import TransactionLog

_logs: dict[tuple[str, str], TransactionLog] = {}
_coordinators: dict[ClientConfig, CoordinatorClient] = {}


def transaction_log(location: str, query_id: str) -> TransactionLog:
    """The log at its newest version."""
    key = (location, query_id)
    log = _logs.pop(key, None)
    if log is None:
        log = TransactionLog.open(location)
    else:
        log.refresh()
    _logs[key] = log  # only now: a log that failed to refresh is opened anew the next time
    return log


def coordinator_client(config: ClientConfig) -> CoordinatorClient:
    """A client whose connections are warm after the first batch."""
    if config not in _coordinators:
        _coordinators[config] = CoordinatorClient(config)
    return _coordinators[config]
