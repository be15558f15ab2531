"""Driver. The transaction requests, each at the version that this protocol relies on.

Versions are part of the protocol, so each has a ceiling here and a new broker or client changes
nothing:

- EndTxn up to 4. From 5 on an end bumps the epoch (KIP-890 part 2): a repeated request with the old
  epoch is then accepted by 5 and refused by 4, so that a recovery could not tell what it was told.
- InitProducerId 3, the first that takes an expected epoch (KIP-360), or 4, as librdkafka, whose
  producers use the same ids. 5 adds an error code that belongs to the newer transaction protocol,
  6 the unfinished two-phase commit (KIP-939).
- FindCoordinator 4, the first that takes many ids at once (KIP-699); no newer one changes that.
- DescribeTransactions and ListTransactions 0 (KIP-664): later ones only add filters.
- Metadata 10 to 12: the first that tell the ids of topics (KIP-516).

kafka-python is imported where a request is made: it takes a quarter of a second to load.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from spark_eos._protocol.transactions.outcome import error_name
from spark_eos._protocol.transactions.transaction import ProducerIdentity

END_TXN_VERSION: Final = 4
INIT_PRODUCER_ID_MIN_VERSION: Final = 3
INIT_PRODUCER_ID_VERSION: Final = 4
NO_EXPECTATION: Final = (-1, -1)
FIND_COORDINATOR_VERSION: Final = 4
METADATA_MIN_VERSION: Final = 10
METADATA_VERSION: Final = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class TxnResponse:
    """What came of a request: a code, and the response or the part of it that is about one id.

    Where no response came, `part` is None and `detail` says why. The text holds no secret.
    """

    code: int
    part: Any = None
    detail: str = ""
    login_refused: bool = False  # asking again cannot help

    @property
    def text(self) -> str:
        """For people: what came last."""
        return self.detail or error_name(self.code)


def find_coordinators(transactional_ids: Sequence[str]) -> Any:
    """Which broker coordinates each id?"""
    from kafka.protocol.metadata import CoordinatorType, FindCoordinatorRequest

    return FindCoordinatorRequest(
        key_type=CoordinatorType.TRANSACTION,
        coordinator_keys=list(transactional_ids),
        min_version=FIND_COORDINATOR_VERSION,
        max_version=FIND_COORDINATOR_VERSION,
    )


def metadata(topics: Sequence[str]) -> Any:
    """Which id has each topic, and which broker leads each of its partitions? Creates none."""
    from kafka.protocol.metadata import MetadataRequest

    return MetadataRequest(
        topics=[MetadataRequest.MetadataRequestTopic(name=topic) for topic in topics],
        allow_auto_topic_creation=False,
        min_version=METADATA_MIN_VERSION,
        max_version=METADATA_VERSION,
    )


def end_txn(transaction: ProducerIdentity, *, committed: bool) -> Any:
    """End the transaction of this producer id and epoch."""
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
    """Bump the epoch of the id; whatever it has open is aborted.

    Where a producer id and epoch are `expected`, only if the id is there (KIP-360).
    """
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
    """In which state is each id?"""
    from kafka.protocol.admin import DescribeTransactionsRequest

    return DescribeTransactionsRequest(transactional_ids=list(transactional_ids), max_version=0)


def list_transactions(states: Iterable[str]) -> Any:
    """Which ids does this broker coordinate that are in one of the states?"""
    from kafka.protocol.admin import ListTransactionsRequest

    return ListTransactionsRequest(
        state_filters=list(states), producer_id_filters=[], max_version=0
    )
