"""Driver. Finds the coordinator of each id, keeps it, follows it when it moves, and asks again.

A question goes to all its ids at once. What was not settled is asked again after a pause that
grows, until the deadline: the coordinator is loading, is moving, is gone with its broker, or is
still busy with the markers of the transaction before. Every request here may be repeated.
"""

import random
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from spark_eos.kafka import messages
from spark_eos.kafka.client_config import ClientConfig
from spark_eos.kafka.failure import Failure
from spark_eos.protocol.deadline import Deadline
from spark_eos.protocol.outcome import (
    COORDINATOR_MOVED,
    Api,
    ErrorCode,
    Outcome,
    error_name,
    outcome_of,
)

FIRST_PAUSE_S: Final = 0.005
LAST_PAUSE_S: Final = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The code for one id or broker, with the part of a response that is about it."""

    code: int
    part: Any = None
    detail: str = ""
    login_refused: bool = False  # asking again cannot help

    @property
    def text(self) -> str:
        """For people: what came last."""
        return self.detail or error_name(self.code)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A request: how it is built for some ids, and where its response has the answer to each."""

    api: Api
    build: Callable[[Sequence[str]], Any]
    read: Callable[[Any], Iterable[tuple[str, Answer]]] | None = None

    @property
    def takes_many(self) -> bool:
        """Whether one request can be about several ids; else its response is the answer."""
        return self.read is not None


class Followed:
    """The coordinators of one cluster, as far as they are known."""

    def __init__(self, config: ClientConfig) -> None:
        # Loads kafka-python, which takes a quarter of a second: only who asks shall pay for it.
        # It warns of its own use of importlib.resources, once for each of its schemas.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            from spark_eos.kafka.wire import Wire

        self._wire = Wire(config)
        self._nodes: dict[str, int] = {}

    def ask(
        self, question: Question, transactional_ids: Iterable[str], deadline: Deadline
    ) -> dict[str, Answer]:
        """The last answer for each id: settled, or as it stood at the deadline."""
        answers = dict.fromkeys(transactional_ids, _NO_ANSWER)
        waiting = list(answers)
        pauses = Pauses(deadline)
        while waiting:
            answers |= self._find(waiting, deadline)
            answers |= self._send(question, [k for k in waiting if k in self._nodes], deadline)
            waiting = [
                key
                for key in waiting
                if outcome_of(question.api, answers[key].code) is Outcome.UNKNOWN
            ]
            for key in waiting:
                if answers[key].code in COORDINATOR_MOVED:
                    self._nodes.pop(key, None)
            refused = any(answers[key].login_refused for key in waiting)
            if waiting and (refused or not pauses.wait()):
                break
        return answers

    def ask_every_broker(self, build: Callable[[], Any], deadline: Deadline) -> list[Answer]:
        """One answer per broker of the cluster, or the last failure, alone."""
        pauses = Pauses(deadline)
        while True:
            nodes = self._wire.node_ids(deadline)
            if isinstance(nodes, Failure):
                answers = [_answer(nodes)]
            else:
                responses = self._wire.send_all([(node, build()) for node in nodes], deadline)
                answers = [_answer(response) for response in responses]
            failed = [answer for answer in answers if answer.code != ErrorCode.NONE]
            if not failed:
                return answers
            if failed[0].login_refused or not pauses.wait():
                return failed[:1]

    def leaders(self, topics: Sequence[str], deadline: Deadline) -> Answer:
        """The node that leads each partition, as any broker knows it: negative where none does."""
        (response,) = self._wire.send_all([(None, messages.metadata(topics))], deadline)
        if isinstance(response, Failure):
            return _answer(response)
        led = {
            (topic.name, partition.partition_index): partition.leader_id
            for topic in response.topics
            for partition in topic.partitions
        }
        return Answer(code=ErrorCode.NONE, part=led)

    def cluster_id(self, deadline: Deadline) -> Answer:
        """The name of the cluster. Costs no request where one was answered before."""
        found = self._wire.cluster_id(deadline)
        return (
            _answer(found)
            if isinstance(found, Failure)
            else Answer(code=ErrorCode.NONE, part=found)
        )

    def close(self) -> None:
        """Close the connections."""
        self._wire.close()

    def _find(self, waiting: Sequence[str], deadline: Deadline) -> dict[str, Answer]:
        """Look up what is not known; return the ids without a coordinator, with the reason."""
        unknown = [key for key in waiting if key not in self._nodes]
        if not unknown:
            return {}
        (response,) = self._wire.send_all([(None, messages.find_coordinators(unknown))], deadline)
        if isinstance(response, Failure):
            return dict.fromkeys(unknown, _answer(response))
        failed = {}
        for found in response.coordinators:
            if found.error_code == ErrorCode.NONE:
                self._nodes[found.key] = found.node_id
            else:
                failed[found.key] = Answer(code=found.error_code)
        return failed

    def _send(
        self, question: Question, keys: Sequence[str], deadline: Deadline
    ) -> dict[str, Answer]:
        groups: list[tuple[int, list[str]]] = [(self._nodes[key], [key]) for key in keys]
        if question.takes_many:
            nodes = sorted({self._nodes[key] for key in keys})
            groups = [(node, [key for key in keys if self._nodes[key] == node]) for node in nodes]
        responses = self._wire.send_all(
            [(node, question.build(group)) for node, group in groups], deadline
        )
        answers: dict[str, Answer] = {}
        for (_, group), response in zip(groups, responses, strict=True):
            if isinstance(response, Failure) or question.read is None:
                answers |= dict.fromkeys(group, _answer(response))
            else:
                answers |= {key: answer for key, answer in question.read(response) if key in group}
        return answers


def _answer(response: Any) -> Answer:
    if isinstance(response, Failure):
        return Answer(
            code=response.code, detail=response.text, login_refused=response.login_refused
        )
    return Answer(code=response.error_code, part=response)


class Pauses:
    """Pauses that grow from 5 to 200 ms, with jitter, within a deadline."""

    def __init__(self, deadline: Deadline) -> None:
        self._deadline = deadline
        self._next_s = FIRST_PAUSE_S

    def wait(self) -> bool:
        """Wait; return False, at once or at the deadline, if it is over."""
        # Jitter keeps two drivers apart; nothing secret hangs on it.
        time.sleep(min(self._next_s * random.uniform(0.5, 1), self._deadline.remaining_s))  # noqa: S311
        self._next_s = min(self._next_s * 2, LAST_PAUSE_S)
        return not self._deadline.passed


_NO_ANSWER: Final = Answer(code=ErrorCode.NETWORK_EXCEPTION, detail="no time was left to ask")
