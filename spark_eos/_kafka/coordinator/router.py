"""Driver. Finds the coordinator of each id, keeps it, follows it when it moves, and asks again.

A question goes to all its ids at once. What was not settled is asked again after a pause that
grows, until the deadline: the coordinator is loading, is moving, is gone with its broker, or is
still busy with the markers of the transaction before. Requests may be repeated here, unless the
question says that they may not.
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
    """A request: how it is built for some ids, and where its response has the answer to each."""

    api: Api
    build: Callable[[Sequence[str]], Any]
    read: Callable[[Any], Iterable[tuple[str, TxnResponse]]] | None = None
    may_repeat: bool = True  # else it is not sent again while it may have been done

    @property
    def takes_many(self) -> bool:
        """Whether one request can be about several ids; else its response is the answer."""
        return self.read is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicMetadata:
    """A topic: its id, None where the cluster gives none, and the leader of each partition.

    A leader is negative for a partition that has none.
    """

    topic_id: str | None
    leaders: Mapping[int, int]


# Of a partition without a leader the topic's own error is told too.
_TOPIC_ANSWERS: Final = (
    ErrorCode.NONE,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.LEADER_NOT_AVAILABLE,
)


class CoordinatorRouter:
    """The coordinators of one cluster, as far as they are known."""

    def __init__(self, config: ClientConfig) -> None:
        # Loads kafka-python, which takes a quarter of a second: only who asks shall pay for it.
        # It warns of its own use of importlib.resources, once for each of its schemas.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            from spark_eos._kafka.coordinator.wire import Wire

        self._wire = Wire(config)
        self._nodes: dict[str, int] = {}

    def ask(
        self, question: TxnRequest, transactional_ids: Iterable[str], deadline: Deadline
    ) -> dict[str, TxnResponse]:
        """The last answer for each id: settled, or as it stood at the deadline."""
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
        """One answer per broker of the cluster, or the last failure, alone."""
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
        """The topics as any broker knows them: a `TopicMetadata` for each that exists."""
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
        """The name of the cluster. Costs no request where one was answered before."""
        return self._wire.cluster_id(deadline)

    def close(self) -> None:
        """Close the connections."""
        self._wire.close()

    def _find(self, waiting: Sequence[str], deadline: Deadline) -> dict[str, TxnResponse]:
        """Look up what is not known; return the ids without a coordinator, with the reason."""
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
        if question.takes_many:
            nodes = sorted({self._nodes[key] for key in keys})
            groups = [(node, [key for key in keys if self._nodes[key] == node]) for node in nodes]
        responses = self._wire.send_all(
            [(node, question.build(group)) for node, group in groups], deadline
        )
        answers: dict[str, TxnResponse] = {}
        for (_, group), response in zip(groups, responses, strict=True):
            if response.part is None or question.read is None:
                answers |= dict.fromkeys(group, response)
            else:
                read = question.read(response.part)
                answers |= {key: answer for key, answer in read if key in group}
        return answers


_NO_ANSWER: Final = TxnResponse(code=ErrorCode.NETWORK_EXCEPTION, detail="no time was left to ask")
