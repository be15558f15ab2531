"""Driver. Sends transaction requests to coordinators, without a producer.

The driver ends a task's transaction: a coordinator checks only the transactional id, producer id
and epoch of an EndTxn. `_protocol/transactions/outcome.py` alone judges error codes.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NoReturn

from spark_eos._deadline import OUTDATED_S, Backoff, Deadline
from spark_eos._kafka.config.client_config import ClientConfig
from spark_eos._kafka.coordinator import messages
from spark_eos._kafka.coordinator.messages import TxnResponse
from spark_eos._kafka.coordinator.router import CoordinatorRouter, TopicMetadata, TxnRequest
from spark_eos._kafka.to_error import Request, no_answer, to_error
from spark_eos._protocol.offsets.topic_partition import TopicPartition
from spark_eos._protocol.transactions.outcome import Api, ErrorCode, Outcome, outcome_of
from spark_eos._protocol.transactions.ownership import ProducerEpoch, Token
from spark_eos._protocol.transactions.state import COMMITTED_STATES, TransactionState, state_named
from spark_eos._protocol.transactions.transaction import ProducerIdentity, TransactionDescription
from spark_eos.errors import SparkEosError

SHOWN_IDS: Final = 3
OPEN_STATES: Final = (
    TransactionState.ONGOING,
    TransactionState.PREPARE_COMMIT,
    TransactionState.PREPARE_ABORT,
    TransactionState.PREPARE_EPOCH_FENCE,
)
_FENCED = (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH)
# What each request does, and the rights that it needs.
_VERBS: Final = {
    Api.DESCRIBE_TRANSACTIONS: ("describe", "DESCRIBE"),
    Api.INIT_PRODUCER_ID: ("take over", "WRITE and DESCRIBE"),
    Api.END_TXN: ("end the transaction of", "WRITE and DESCRIBE"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class EndAnswer:
    """The outcome of an EndTxn, the last error code, and the last answer as text."""

    outcome: Outcome
    code: int
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionListing:
    """A transaction as ListTransactions reports it."""

    transactional_id: str
    producer_id: int
    state: TransactionState


class CoordinatorClient:
    """Connects with the first request. Callers in several threads take turns."""

    def __init__(self, config: ClientConfig) -> None:
        self._servers = config.bootstrap_servers
        self._router = CoordinatorRouter(config)

    def end(
        self, transactions: Sequence[ProducerIdentity], *, committed: bool, deadline: Deadline
    ) -> dict[str, EndAnswer]:
        """Commit or abort each transaction. One without an answer at the deadline is UNKNOWN.

        DONE: the coordinator's log has it. Markers follow in milliseconds, also after a crash. But
        only a partition with a leader gets a marker: call `await_leaders` first.
        """
        by_id = {transaction.transactional_id: transaction for transaction in transactions}
        question = TxnRequest(
            api=Api.END_TXN, build=lambda ids: messages.end_txn(by_id[ids[0]], committed=committed)
        )
        return {
            key: EndAnswer(
                outcome=outcome_of(Api.END_TXN, answer.code), code=answer.code, detail=answer.text
            )
            for key, answer in self._router.ask(question, by_id, deadline).items()
        }

    def await_leaders(
        self, partitions: Iterable[TopicPartition], topic_ids: Mapping[str, str], deadline: Deadline
    ) -> dict[str, str | None]:
        """Wait for a leader of each partition: Kafka 4 skips other markers (docs/design/kafka.md).

        Returns the topics whose id is not that of `topic_ids`: the new id, or None if the topic
        does not exist. A broker may learn of a topic late, so this answer is checked again.
        """
        wanted = sorted(set(partitions))
        topics = sorted({topic for topic, _ in wanted} | topic_ids.keys())
        asked = f"return the leaders of {', '.join(topics[:SHOWN_IDS])}"
        backoff = Backoff(deadline)
        late = Backoff(deadline.at_most_s(OUTDATED_S))
        said: TxnResponse | None = None
        while topics:
            answer = self._router.topics(topics, deadline)
            if answer.code == ErrorCode.NONE:
                replaced = _replaced(topic_ids, answer.part)
                if replaced:
                    if late.wait():
                        continue
                    return replaced
                missing = [place for place in wanted if not _has_leader(answer.part, *place)]
                if not missing:
                    return {}
                said = TxnResponse(code=answer.code, detail=f"{missing[0]} has no leader")
            if answer.login_refused or answer.code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                self._fail(asked, answer)
            if not backoff.wait():
                # The deadline cuts the last request short, so an earlier answer says more.
                self._fail(asked, said or answer)
        return {}

    def describe(
        self, transactional_ids: Sequence[str], deadline: Deadline
    ) -> dict[str, TransactionDescription | None]:
        """The state of each id, or None if the coordinator does not know the id."""
        question = TxnRequest(
            api=Api.DESCRIBE_TRANSACTIONS,
            build=messages.describe_transactions,
            read=lambda response: [
                (part.transactional_id, TxnResponse(code=part.error_code, part=part))
                for part in response.transaction_states
            ],
        )
        unknown = ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
        answers = self._router.ask(question, transactional_ids, deadline)
        self._check(question.api, {k: a for k, a in answers.items() if a.code != unknown})
        return {
            key: None if answer.code == unknown else _description(answer.part)
            for key, answer in answers.items()
        }

    def fence(
        self, transactional_ids: Sequence[str], *, timeout_ms: int, deadline: Deadline
    ) -> dict[str, ProducerIdentity]:
        """Bump the epoch of each id. Kafka fences its producer and aborts its open transaction."""
        question = TxnRequest(
            api=Api.INIT_PRODUCER_ID,
            build=lambda ids: messages.init_producer_id(ids[0], timeout_ms),
        )
        answers = self._router.ask(question, transactional_ids, deadline)
        self._check(question.api, answers)
        return {
            key: ProducerIdentity(
                transactional_id=key,
                producer_id=answer.part.producer_id,
                producer_epoch=answer.part.producer_epoch,
            )
            for key, answer in answers.items()
        }

    def start_driver(
        self, transactional_id: str, mark: int, deadline: Deadline
    ) -> ProducerEpoch | None:
        """Move the epoch of a query's own id. None: unknown. Sent once: each request moves it."""
        question = TxnRequest(
            api=Api.INIT_PRODUCER_ID,
            build=lambda ids: messages.init_producer_id(ids[0], mark),
            may_repeat=False,
        )
        return self._moved(question, transactional_id, deadline)

    def move_driver(
        self, transactional_id: str, token: Token, deadline: Deadline
    ) -> ProducerEpoch | None:
        """Move the epoch of a query's own id from `token.before`, once. None: it has another."""
        before = token.before or messages.NO_EXPECTATION
        question = TxnRequest(
            api=Api.INIT_PRODUCER_ID,
            build=lambda ids: messages.init_producer_id(ids[0], token.mark, before),
        )
        return self._moved(question, transactional_id, deadline)

    def _moved(
        self, question: TxnRequest, transactional_id: str, deadline: Deadline
    ) -> ProducerEpoch | None:
        answer = self._router.ask(question, [transactional_id], deadline)[transactional_id]
        outcome = outcome_of(question.api, answer.code)
        if outcome is Outcome.DONE:
            return ProducerEpoch(answer.part.producer_id, answer.part.producer_epoch)
        if answer.code in _FENCED or (outcome is Outcome.UNKNOWN and not question.may_repeat):
            return None
        self._check(question.api, {transactional_id: answer})
        return None

    def list_open(self, deadline: Deadline) -> list[TransactionListing]:
        """Every open transaction of the cluster that this user may describe."""
        return self._list(OPEN_STATES, deadline)

    def list_committed(self, deadline: Deadline) -> list[TransactionListing]:
        """Every transactional id that brokers know and whose last transaction was committed."""
        return self._list(COMMITTED_STATES, deadline)

    def cluster_id(self, deadline: Deadline) -> str:
        """The id of the cluster."""
        answer = self._router.cluster_id(deadline)
        if answer.code != ErrorCode.NONE:
            self._fail("return its cluster id", answer)
        return str(answer.part)

    def close(self) -> None:
        """Close the connections."""
        self._router.close()

    def _list(
        self, states: Sequence[TransactionState], deadline: Deadline
    ) -> list[TransactionListing]:
        names = [state.wire_name for state in states]
        answers = self._router.ask_every_broker(lambda: messages.list_transactions(names), deadline)
        for answer in answers:
            if answer.code != ErrorCode.NONE:
                self._fail("list the transactions of every broker", answer)
        return [
            TransactionListing(
                transactional_id=part.transactional_id,
                producer_id=part.producer_id,
                state=state_named(part.transaction_state),
            )
            for answer in answers
            for part in answer.part.transaction_states
        ]

    def _check(self, api: Api, answers: Mapping[str, TxnResponse]) -> None:
        """Raise for the first id that was not answered with success."""
        failed = {k: a for k, a in answers.items() if outcome_of(api, a.code) is not Outcome.DONE}
        for key, answer in failed.items():
            if outcome_of(api, answer.code) is Outcome.REFUSED:
                raise txn_error(self._servers, api, key, answer.code, answer.text)
        if failed:
            shown = ", ".join(f"'{key}'" for key in list(failed)[:SHOWN_IDS])
            more = f" and {len(failed) - SHOWN_IDS} more" if len(failed) > SHOWN_IDS else ""
            to = f"{_VERBS[api][0]} {shown}{more} ({api.value})"
            self._fail(to, next(iter(failed.values())))

    def _fail(self, to: str, answer: TxnResponse) -> NoReturn:
        raise no_answer(self._servers, to, answer.text, login_refused=answer.login_refused)


def _replaced(
    topic_ids: Mapping[str, str], found: Mapping[str, TopicMetadata]
) -> dict[str, str | None]:
    """The topics whose id is not that of `topic_ids`, unless the cluster has no topic ids."""
    now = {t: found[t].topic_id if t in found else None for t in topic_ids}
    return {t: i for t, i in now.items() if i != topic_ids[t] and (i is not None or t not in found)}


def _has_leader(found: Mapping[str, TopicMetadata], topic: str, partition: int) -> bool:
    """Whether the partition has a leader, or does not exist and needs none."""
    return topic not in found or found[topic].leaders.get(partition, 0) >= 0


def txn_error(servers: str, api: Api, transactional_id: str, code: int, said: str) -> SparkEosError:
    """The error for a refused transaction request."""
    verb, right = _VERBS[api]
    on_id = f"transactional id '{transactional_id}'"
    request = Request(
        servers=servers,
        to=f"{verb} {on_id} ({api.value})",
        rights=f"{right} on {on_id}",
        transactional_id=transactional_id,
    )
    return to_error(code, said, request)


def _description(part: Any) -> TransactionDescription:
    started_ms = part.transaction_start_time_ms
    return TransactionDescription(
        identity=ProducerIdentity(
            transactional_id=part.transactional_id,
            producer_id=part.producer_id,
            producer_epoch=part.producer_epoch,
        ),
        state=state_named(part.transaction_state),
        timeout_ms=part.transaction_timeout_ms,
        start_time_ms=started_ms if started_ms > 0 else None,
    )
