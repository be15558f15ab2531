"""Driver. Finds the coordinator of each id, follows it when it moves, and repeats requests.

Until the deadline an unsettled id is asked about again: its coordinator is loading, moving, down,
or busy with the markers of the last transaction.
"""

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from spark_eos._deadline import Backoff, Deadline
from spark_eos._kafka.config.client_config import ClientConfig
from spark_eos._kafka.coordinator import messages
from spark_eos._kafka.coordinator.messages import TxnResponse
from spark_eos._kafka.topic_id import topic_id_text
from spark_eos._protocol.transactions.outcome import (
    COORDINATOR_MOVED,
    NOT_DONE,
    Api,
    ErrorCode,
    Outcome,
    outcome_of,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TxnRequest:
    """How a request is built for some ids, and how the answer to each id is read."""

    api: Api
    build: Callable[[Sequence[str]], Any]
    read: Callable[[Any], Iterable[tuple[str, TxnResponse]]] | None = None
    may_repeat: bool = True  # if not: never sent again when it may have been done


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicMetadata:
    """A topic, with the leader of each partition."""

    topic_id: str | None  # None: the cluster has no topic ids
    leaders: Mapping[int, int]  # negative: the partition has no leader


_NO_ANSWER: Final = TxnResponse(code=ErrorCode.NETWORK_EXCEPTION, detail="no time was left to ask")
# A topic may have the error code of a partition that has no leader.
_TOPIC_ANSWERS: Final = (
    ErrorCode.NONE,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.LEADER_NOT_AVAILABLE,
)


class CoordinatorRouter:
    """The known coordinators of one cluster."""

    def __init__(self, config: ClientConfig) -> None:
        # Imported lazily: loading kafka-python takes 250 ms. It also warns once for each of its
        # schemas about its own use of importlib.resources.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            from spark_eos._kafka.coordinator.wire import Wire

        self._wire = Wire(config)
        self._nodes: dict[str, int] = {}

    def ask(
        self, question: TxnRequest, transactional_ids: Iterable[str], deadline: Deadline
    ) -> dict[str, TxnResponse]:
        """The last answer for each id. An id may be unsettled at the deadline."""
        answers = dict.fromkeys(transactional_ids, _NO_ANSWER)
        waiting = list(answers)
        backoff = Backoff(deadline)
        while waiting:
            answers |= self._find(waiting, deadline)
            sent = [key for key in waiting if key in self._nodes]
            answers |= self._send(question, sent, deadline)
            waiting = [
                key
                for key in waiting
                if outcome_of(question.api, answers[key].code) is Outcome.UNKNOWN
                and (question.may_repeat or key not in sent or answers[key].code in NOT_DONE)
            ]
            for key in waiting:
                if answers[key].code in COORDINATOR_MOVED:
                    self._nodes.pop(key, None)
            refused = any(answers[key].login_refused for key in waiting)
            if waiting and (refused or not backoff.wait()):
                break
        return answers

    def ask_every_broker(self, build: Callable[[], Any], deadline: Deadline) -> list[TxnResponse]:
        """One answer per broker of the cluster, or only the last failure."""
        backoff = Backoff(deadline)
        while True:
            nodes = self._wire.node_ids(deadline)
            answers = [nodes]
            if nodes.part is not None:
                answers = self._wire.send_all([(node, build()) for node in nodes.part], deadline)
            failed = [answer for answer in answers if answer.code != ErrorCode.NONE]
            if not failed:
                return answers
            if failed[0].login_refused or not backoff.wait():
                return failed[:1]

    def topics(self, names: Sequence[str], deadline: Deadline) -> TxnResponse:
        """A `TopicMetadata` for each topic that exists, from any broker."""
        (response,) = self._wire.send_all([(None, messages.metadata(names))], deadline)
        if response.part is None:
            return response
        found = {topic.name: topic for topic in response.part.topics}
        refused = [t for t in found.values() if t.error_code not in _TOPIC_ANSWERS]
        if refused:
            return TxnResponse(code=refused[0].error_code)
        known = {
            name: TopicMetadata(
                topic_id=topic_id_text(topic.topic_id),
                leaders={p.partition_index: p.leader_id for p in topic.partitions},
            )
            for name, topic in found.items()
            if topic.error_code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        }
        return TxnResponse(code=ErrorCode.NONE, part=known)

    def cluster_id(self, deadline: Deadline) -> TxnResponse:
        """The id of the cluster. After the first answer it costs no request."""
        return self._wire.cluster_id(deadline)

    def close(self) -> None:
        """Close the connections."""
        self._wire.close()

    def _find(self, waiting: Sequence[str], deadline: Deadline) -> dict[str, TxnResponse]:
        """Look up unknown coordinators. Return the ids that have none, with the reason."""
        unknown = [key for key in waiting if key not in self._nodes]
        if not unknown:
            return {}
        (response,) = self._wire.send_all([(None, messages.find_coordinators(unknown))], deadline)
        if response.part is None:
            return dict.fromkeys(unknown, response)
        failed = {}
        for found in response.part.coordinators:
            if found.error_code == ErrorCode.NONE:
                self._nodes[found.key] = found.node_id
            else:
                failed[found.key] = TxnResponse(code=found.error_code)
        return failed

    def _send(
        self, question: TxnRequest, keys: Sequence[str], deadline: Deadline
    ) -> dict[str, TxnResponse]:
        groups: list[tuple[int, list[str]]] = [(self._nodes[key], [key]) for key in keys]
        if question.read is not None:  # one request for all ids of a node
            nodes = sorted({self._nodes[key] for key in keys})
            groups = [(node, [key for key in keys if self._nodes[key] == node]) for node in nodes]
        requests = [(node, question.build(group)) for node, group in groups]
        responses = self._wire.send_all(requests, deadline)
        answers: dict[str, TxnResponse] = {}
        for (_, group), response in zip(groups, responses, strict=True):
            if response.part is None or question.read is None:
                answers |= dict.fromkeys(group, response)
            else:
                read = question.read(response.part)
                answers |= {key: answer for key, answer in read if key in group}
        return answers
