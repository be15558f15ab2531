"""Pure. What an error code says about a request: three outcomes, never two.

`DONE`: it took effect. `REFUSED`: it had no effect and will have none. `UNKNOWN`: it may have had
an effect, so ask again. A code that no table names is UNKNOWN: a new broker may invent one, and to
ask again is safe.
"""

from enum import Enum, IntEnum


class ErrorCode(IntEnum):
    """The codes of Kafka's protocol that can answer the requests of this project."""

    UNKNOWN_SERVER_ERROR = -1
    NONE = 0
    UNKNOWN_TOPIC_OR_PARTITION = 3
    LEADER_NOT_AVAILABLE = 5
    REQUEST_TIMED_OUT = 7
    NETWORK_EXCEPTION = 13
    COORDINATOR_LOAD_IN_PROGRESS = 14
    COORDINATOR_NOT_AVAILABLE = 15
    NOT_COORDINATOR = 16
    TOPIC_AUTHORIZATION_FAILED = 29
    CLUSTER_AUTHORIZATION_FAILED = 31
    UNSUPPORTED_VERSION = 35
    INVALID_REQUEST = 42
    INVALID_PRODUCER_EPOCH = 47
    INVALID_TXN_STATE = 48
    INVALID_PRODUCER_ID_MAPPING = 49
    INVALID_TRANSACTION_TIMEOUT = 50
    CONCURRENT_TRANSACTIONS = 51
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53
    PRODUCER_FENCED = 90
    TRANSACTIONAL_ID_NOT_FOUND = 105
    TRANSACTION_ABORTABLE = 120


class Outcome(Enum):
    """What is known after the answer to a request."""

    DONE = "done"
    REFUSED = "refused"
    UNKNOWN = "unknown"


class Api(Enum):
    """The requests whose answers are classified here."""

    END_TXN = "EndTxn"
    INIT_PRODUCER_ID = "InitProducerId"
    DESCRIBE_TRANSACTIONS = "DescribeTransactions"


_E = ErrorCode

# The coordinator is moving, loading or busy with the previous transaction's markers. A server error
# may come after EndTxn has written the intent, so it is no refusal.
ASK_AGAIN: frozenset[ErrorCode] = frozenset(
    {
        _E.UNKNOWN_SERVER_ERROR,
        _E.REQUEST_TIMED_OUT,
        _E.NETWORK_EXCEPTION,
        _E.COORDINATOR_LOAD_IN_PROGRESS,
        _E.COORDINATOR_NOT_AVAILABLE,
        _E.NOT_COORDINATOR,
        _E.CONCURRENT_TRANSACTIONS,
    }
)

# Of these, the codes after which the coordinator must be looked up again.
COORDINATOR_MOVED: frozenset[ErrorCode] = frozenset(
    {_E.COORDINATOR_NOT_AVAILABLE, _E.NOT_COORDINATOR, _E.NETWORK_EXCEPTION, _E.REQUEST_TIMED_OUT}
)

# Of these, the codes that say for certain that nothing was done.
NOT_DONE: frozenset[ErrorCode] = frozenset(
    {_E.COORDINATOR_LOAD_IN_PROGRESS, _E.NOT_COORDINATOR, _E.CONCURRENT_TRANSACTIONS}
)

AUTHORIZATION: frozenset[ErrorCode] = frozenset(
    {_E.CLUSTER_AUTHORIZATION_FAILED, _E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED}
)
_INVALID = AUTHORIZATION | {_E.UNSUPPORTED_VERSION, _E.INVALID_REQUEST}
_LOST = {
    _E.INVALID_PRODUCER_EPOCH,
    _E.INVALID_PRODUCER_ID_MAPPING,
    _E.PRODUCER_FENCED,
    _E.TRANSACTION_ABORTABLE,
}

REFUSED: dict[Api, frozenset[ErrorCode]] = {
    Api.END_TXN: _INVALID | _LOST | {_E.INVALID_TXN_STATE, _E.TRANSACTIONAL_ID_NOT_FOUND},
    Api.INIT_PRODUCER_ID: _INVALID | _LOST | {_E.INVALID_TRANSACTION_TIMEOUT},
    Api.DESCRIBE_TRANSACTIONS: _INVALID | {_E.TRANSACTIONAL_ID_NOT_FOUND},
}


def outcome_of(api: Api, code: int) -> Outcome:
    """What the answer `code` to a request of `api` says."""
    if code == ErrorCode.NONE:
        return Outcome.DONE
    return Outcome.REFUSED if code in REFUSED[api] else Outcome.UNKNOWN


def error_name(code: int) -> str:
    """Kafka's name of an error code."""
    try:
        return ErrorCode(code).name
    except ValueError:
        return f"error code {code}"
