"""Driver. The transaction requests. docs/upstream.md says why each version is pinned."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from spark_eos._protocol.transactions.outcome import error_name
from spark_eos._protocol.transactions.transaction import ProducerIdentity

# From 5 on an end bumps the epoch (KIP-890): 5 accepts a repeated EndTxn that 4 refuses.
END_TXN_VERSION: Final = 4
INIT_PRODUCER_ID_MIN_VERSION: Final = 3  # the first with an expected epoch (KIP-360)
INIT_PRODUCER_ID_VERSION: Final = 4  # as librdkafka, whose producers use the same ids
NO_EXPECTATION: Final = (-1, -1)
FIND_COORDINATOR_VERSION: Final = 4  # the first that takes many ids (KIP-699)
METADATA_MIN_VERSION: Final = 10  # the first with the ids of topics (KIP-516)
METADATA_VERSION: Final = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class TxnResponse:
    """An error code, and the response or its part about one id."""

    code: int
    part: Any = None  # None: there was no response
    detail: str = ""  # why there was none, without secrets
    login_refused: bool = False  # asking again cannot help

    @property
    def text(self) -> str:
        """The last answer, for an error text."""
        return self.detail or error_name(self.code)


def find_coordinators(transactional_ids: Sequence[str]) -> Any:
    """Asks which broker coordinates each id."""
    from kafka.protocol.metadata import CoordinatorType, FindCoordinatorRequest

    return FindCoordinatorRequest(
        key_type=CoordinatorType.TRANSACTION,
        coordinator_keys=list(transactional_ids),
        min_version=FIND_COORDINATOR_VERSION,
        max_version=FIND_COORDINATOR_VERSION,
    )


def metadata(topics: Sequence[str]) -> Any:
    """Asks for the id of each topic and the leaders of its partitions. Creates no topic."""
    from kafka.protocol.metadata import MetadataRequest

    return MetadataRequest(
        topics=[MetadataRequest.MetadataRequestTopic(name=topic) for topic in topics],
        allow_auto_topic_creation=False,
        min_version=METADATA_MIN_VERSION,
        max_version=METADATA_VERSION,
    )


def end_txn(transaction: ProducerIdentity, *, committed: bool) -> Any:
    """Ends the transaction of this producer id and epoch."""
    from kafka.protocol.producer import EndTxnRequest

    return EndTxnRequest(
        transactional_id=transaction.transactional_id,
        producer_id=transaction.producer_id,
        producer_epoch=transaction.producer_epoch,
        committed=committed,
        max_version=END_TXN_VERSION,
    )


def init_producer_id(
    transactional_id: str, timeout_ms: int, expected: tuple[int, int] = NO_EXPECTATION
) -> Any:
    """Bumps the epoch of the id, if it is the `expected` one (KIP-360). Aborts what is open."""
    from kafka.protocol.producer import InitProducerIdRequest

    producer_id, producer_epoch = expected
    return InitProducerIdRequest(
        transactional_id=transactional_id,
        transaction_timeout_ms=timeout_ms,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        min_version=INIT_PRODUCER_ID_MIN_VERSION,
        max_version=INIT_PRODUCER_ID_VERSION,
    )


def describe_transactions(transactional_ids: Sequence[str]) -> Any:
    """Asks for the state of each id."""
    from kafka.protocol.admin import DescribeTransactionsRequest

    return DescribeTransactionsRequest(transactional_ids=list(transactional_ids), max_version=0)


def list_transactions(states: Iterable[str]) -> Any:
    """Asks a broker which of its ids are in one of the states."""
    from kafka.protocol.admin import ListTransactionsRequest

    return ListTransactionsRequest(
        state_filters=list(states), producer_id_filters=[], max_version=0
    )
