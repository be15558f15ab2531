"""Asking again: what is repeated, what is not, where it goes, and when it ends."""

from __future__ import annotations

import types
import uuid
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from chaos.progress_checks import OVERTAKEN
from spark_eos._deadline import Backoff, Deadline
from spark_eos._kafka.config.client_config import ClientConfig
from spark_eos._kafka.coordinator import client as coordinator
from spark_eos._kafka.coordinator.client import CoordinatorClient
from spark_eos._kafka.coordinator.messages import TxnResponse
from spark_eos._kafka.topic_id import topic_id_text
from spark_eos._protocol.offsets.topic_partition import TopicPartition
from spark_eos._protocol.transactions.outcome import ErrorCode, Outcome
from spark_eos._protocol.transactions.ownership import ProducerEpoch, Token
from spark_eos._protocol.transactions.transaction import ProducerIdentity
from spark_eos.errors import BrokerUnreachableError, FencedError, OptionError

T0 = TopicPartition("t", 0)
E = ErrorCode
TOPIC_ID = uuid.UUID("6e1f5a2c-0b7d-4f43-9a55-1c2d3e4f5a6b")
IDENTITY = ProducerIdentity(transactional_id="t", producer_id=7, producer_epoch=3)


def response(body: Any) -> TxnResponse:
    """As the wire hands on what a broker has said."""
    return TxnResponse(code=getattr(body, "error_code", E.NONE), part=body)


class FakeWire:
    """Answers from a script; the coordinator of every id is the node of the round."""

    def __init__(self, answers: Sequence[int | TxnResponse], nodes: Sequence[int] = (1,)) -> None:
        self.answers = list(answers)
        self.nodes = list(nodes)
        self.sent: list[tuple[int | None, str]] = []

    def send_all(
        self, requests: Sequence[tuple[int | None, Any]], _: Deadline
    ) -> list[TxnResponse]:
        found = [self._one(node, request) for node, request in requests]
        return [f if isinstance(f, TxnResponse) else response(f) for f in found]

    def _one(self, node: int | None, request: Any) -> Any:
        name = type(request).__name__
        self.sent.append((node, name))
        if name == "FindCoordinatorRequest":
            found = self.nodes.pop(0) if len(self.nodes) > 1 else self.nodes[0]
            parts = [
                types.SimpleNamespace(key=key, node_id=found, error_code=0)
                for key in request.coordinator_keys
            ]
            return types.SimpleNamespace(coordinators=parts)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, TxnResponse):
            return answer
        if name == "DescribeTransactionsRequest":
            states = [
                types.SimpleNamespace(transactional_id=key, error_code=answer)
                for key in request.transactional_ids
            ]
            return types.SimpleNamespace(transaction_states=states)
        if name == "MetadataRequest":
            led = types.SimpleNamespace(partition_index=0, leader_id=answer)
            topics = [
                types.SimpleNamespace(
                    name=topic.name, error_code=0, topic_id=TOPIC_ID, partitions=[led]
                )
                for topic in request.topics
            ]
            return types.SimpleNamespace(topics=topics)
        return types.SimpleNamespace(error_code=answer, producer_id=9, producer_epoch=1)


@pytest.fixture
def connected(monkeypatch: pytest.MonkeyPatch) -> Callable[[FakeWire], CoordinatorClient]:
    monkeypatch.setattr("spark_eos._deadline.FIRST_PAUSE_S", 0.0001)
    monkeypatch.setattr("spark_eos._deadline.LAST_PAUSE_S", 0.0002)

    def connect(wire: FakeWire) -> CoordinatorClient:
        client = CoordinatorClient(ClientConfig.from_options({"bootstrap.servers": "a:1"}))
        client._router._wire = wire  # type: ignore[assignment]
        return client

    return connect


def end(client: CoordinatorClient, ms: float = 5_000) -> tuple[Outcome, int]:
    answers = client.end([IDENTITY], committed=True, deadline=Deadline.after_ms(ms))
    return answers["t"].outcome, answers["t"].code


LOST = TxnResponse(code=E.NETWORK_EXCEPTION, detail="lost")


@pytest.mark.parametrize(
    "first",
    [E.CONCURRENT_TRANSACTIONS, E.COORDINATOR_LOAD_IN_PROGRESS, E.UNKNOWN_SERVER_ERROR, 999],
)
def test_busy_coordinator_is_asked_again(connected: Any, first: int) -> None:
    wire = FakeWire([first, first, 0])
    assert end(connected(wire)) == (Outcome.DONE, 0)
    names = [name for _, name in wire.sent]
    assert names == ["FindCoordinatorRequest", *["EndTxnRequest"] * 3]


@pytest.mark.parametrize("first", [E.NOT_COORDINATOR, E.COORDINATOR_NOT_AVAILABLE, LOST])
def test_coordinator_that_moved_is_followed(connected: Any, first: int | TxnResponse) -> None:
    wire = FakeWire([first, 0], nodes=[1, 2])
    assert end(connected(wire)) == (Outcome.DONE, 0)
    assert wire.sent == [
        (None, "FindCoordinatorRequest"),
        (1, "EndTxnRequest"),
        (None, "FindCoordinatorRequest"),
        (2, "EndTxnRequest"),
    ]


@pytest.mark.parametrize("code", [E.INVALID_TXN_STATE, E.PRODUCER_FENCED, E.INVALID_PRODUCER_EPOCH])
def test_refusal_is_not_repeated(connected: Any, code: int) -> None:
    wire = FakeWire([code])
    assert end(connected(wire)) == (Outcome.REFUSED, code)
    assert len(wire.sent) == 2


def test_unknown_at_the_deadline_is_a_value(connected: Any) -> None:
    assert end(connected(FakeWire([E.CONCURRENT_TRANSACTIONS])), ms=20) == (
        Outcome.UNKNOWN,
        E.CONCURRENT_TRANSACTIONS,
    )
    assert end(connected(FakeWire([LOST])), ms=20) == (Outcome.UNKNOWN, E.NETWORK_EXCEPTION)
    assert end(connected(FakeWire([LOST])), ms=0)[0] is Outcome.UNKNOWN


def test_no_pause_after_the_last_answer(connected: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Backoff, "wait", lambda _: pytest.fail("nothing was left to ask"))
    assert end(connected(FakeWire([0]))) == (Outcome.DONE, 0)


def test_refused_login_is_not_repeated(connected: Any) -> None:
    refused = TxnResponse(code=E.NETWORK_EXCEPTION, detail="wrong password", login_refused=True)
    wire = FakeWire([refused])
    client = connected(wire)
    assert end(client)[0] is Outcome.UNKNOWN
    with pytest.raises(OptionError, match=r"refused the login.*wrong password"):
        client.describe(["t"], Deadline.after_ms(5_000))
    assert [name for _, name in wire.sent].count("EndTxnRequest") == 1


def test_missing_acl_is_named(connected: Any) -> None:
    client = connected(FakeWire([E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED]))
    deadline = Deadline.after_ms(5_000)
    with pytest.raises(OptionError, match=r"DESCRIBE on transactional id 'my-id'"):
        client.describe(["my-id"], deadline)
    with pytest.raises(OptionError, match=r"WRITE and DESCRIBE on transactional id 'my-id'"):
        client.fence(["my-id"], timeout_ms=1, deadline=deadline)
    assert end(client) == (Outcome.REFUSED, E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)


def test_fence_that_lost_a_race_says_so(connected: Any) -> None:
    with pytest.raises(FencedError, match="'t'"):
        connected(FakeWire([E.PRODUCER_FENCED])).fence(
            ["t"], timeout_ms=1, deadline=Deadline.after_ms(5_000)
        )


def test_text_at_the_deadline_names_servers_question_ids_and_reason(connected: Any) -> None:
    client = connected(FakeWire([LOST]))
    with pytest.raises(
        BrokerUnreachableError,
        match=r"a:1 did not describe 'i0', 'i1', 'i2' and 2 more \(DescribeTransactions\).*lost",
    ):
        client.describe([f"i{n}" for n in range(5)], Deadline.after_ms(20))


def test_ids_of_one_coordinator_are_described_together(connected: Any) -> None:
    wire = FakeWire([E.TRANSACTIONAL_ID_NOT_FOUND])
    keys = [f"i{n}" for n in range(50)]
    assert connected(wire).describe(keys, Deadline.after_ms(5_000)) == dict.fromkeys(keys)
    assert [name for _, name in wire.sent] == [
        "FindCoordinatorRequest",
        "DescribeTransactionsRequest",
    ]


def test_partition_without_a_leader_is_named_where_the_last_question_was_cut_short(
    connected: Any,
) -> None:
    cut = TxnResponse(code=E.REQUEST_TIMED_OUT, detail="timed out after 5 ms")
    with pytest.raises(BrokerUnreachableError, match="t-0 has no leader"):
        connected(FakeWire([-1, cut])).await_leaders(
            [TopicPartition("t", 0)], {}, Deadline.after_ms(20)
        )
    with pytest.raises(BrokerUnreachableError, match="timed out after 5 ms"):
        connected(FakeWire([cut])).await_leaders(
            [TopicPartition("t", 0)], {}, Deadline.after_ms(20)
        )
    connected(FakeWire([-1, cut, 2])).await_leaders(
        [TopicPartition("t", 0)], {}, Deadline.after_ms(5_000)
    )


def test_refused_login_is_said_where_a_partition_had_no_leader_before(connected: Any) -> None:
    refused = TxnResponse(code=E.NETWORK_EXCEPTION, detail="wrong password", login_refused=True)
    with pytest.raises(OptionError, match="wrong password"):
        connected(FakeWire([-1, refused])).await_leaders(
            [TopicPartition("t", 0)], {}, Deadline.after_ms(5_000)
        )


def test_topic_that_has_another_id_is_told_when_it_was_asked_for_again(
    connected: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker may be late to learn of a topic."""
    monkeypatch.setattr(coordinator, "OUTDATED_S", 0.05)
    wire = FakeWire([2])
    here = topic_id_text(TOPIC_ID)
    assert here is not None
    ask = connected(wire).await_leaders
    assert ask([("t", 0)], {"t": here}, Deadline.after_ms(5_000)) == {}
    assert len(wire.sent) == 1
    assert ask([("t", 0)], {"t": "another"}, Deadline.after_ms(5_000)) == {"t": here}
    assert len(wire.sent) > 2


def test_start_of_a_driver_is_not_sent_twice_while_it_may_have_been_done(connected: Any) -> None:
    lost = TxnResponse(code=E.NETWORK_EXCEPTION, detail="connection lost")
    wire = FakeWire([lost, E.NONE])
    assert connected(wire).start_driver("t", 2, Deadline.after_ms(5_000)) is None
    assert [name for _, name in wire.sent].count("InitProducerIdRequest") == 1


def test_start_of_a_driver_is_sent_again_where_it_was_not_done(connected: Any) -> None:
    wire = FakeWire([E.COORDINATOR_LOAD_IN_PROGRESS, E.NOT_COORDINATOR, E.NONE])
    assert connected(wire).start_driver("t", 2, Deadline.after_ms(5_000)) == (9, 1)


def test_move_of_a_driver_is_asked_for_again(connected: Any) -> None:
    token = Token(before=ProducerEpoch(9, 0), mark=1, place=1)
    lost = TxnResponse(code=E.NETWORK_EXCEPTION, detail="connection lost")
    assert connected(FakeWire([lost, E.NONE])).move_driver(
        "t", token, Deadline.after_ms(5_000)
    ) == (9, 1)
    fenced = connected(FakeWire([E.PRODUCER_FENCED]))
    assert fenced.move_driver("t", token, Deadline.after_ms(5_000)) is None


def test_driver_that_cannot_move_its_epoch_says_what_the_chaos_bench_waits_for(
    connected: Any,
) -> None:
    token = Token(before=ProducerEpoch(7, 3), mark=1001, place=1)
    client = connected(FakeWire([LOST]))
    with pytest.raises(BrokerUnreachableError) as caught:
        client.move_driver("spark-eos-q-driver", token, Deadline.after_ms(20))
    assert OVERTAKEN.search(f"spark_eos.errors.BrokerUnreachableError: {caught.value}")
