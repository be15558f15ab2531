"""A batch write without a log, on a real broker that answers only some of the requests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from functools import partial
from types import SimpleNamespace

import pyarrow as pa
import pytest

from chaos.cluster import free_ports, launch_behind
from chaos.proxy import CUT_AFTER, DELAY, DROP, HOST, Proxies, Rule
from spark_eos._deadline import Deadline
from spark_eos._kafka.config.client_config import ClientConfig
from spark_eos._kafka.coordinator.client import CoordinatorClient
from spark_eos._options import batch_write_options
from spark_eos._sink.message import TaskMessage
from spark_eos._sink.task.context import Task
from spark_eos.errors import BrokerUnreachableError, OperatorError
from spark_eos.testing import EmbeddedKafka
from tests.chaos.oracle import assert_exactly_once, assert_none_open, committed_values
from tests.conftest import SMALL_JVM, TopicFactory
from tests.steps import abort_write, commit_write, plan_write, write_task

pytestmark = [pytest.mark.broker, pytest.mark.timeout(300)]
NODE = 1
ALWAYS = 1_000_000
DESCRIBE_TRANSACTIONS = "65"  # the proxy calls it by its number
VALUES = ("a", "b", "c")
LET_ONE_PASS = {"action": DELAY, "seconds": 0}
WITHHOLD_ONE_ANSWER = {"action": CUT_AFTER}
LET_NONE_PASS = {"action": DROP, "count": ALWAYS}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimpleNamespace]:
    """One node: `kafka` for the test, `servers` behind the proxy for the write."""
    proxies, own_ports = Proxies(), dict(zip([NODE], free_ports(1), strict=True))
    port = proxies.open(NODE, own_ports[NODE])
    how = partial(launch_behind, proxies, own_ports)
    try:
        folder = tmp_path_factory.mktemp("proxied")
        with EmbeddedKafka(folder, jvm_flags=SMALL_JVM, how=how) as kafka:
            yield SimpleNamespace(kafka=kafka, servers=f"{HOST}:{port}", proxies=proxies)
    finally:
        proxies.close()


class Write:
    """A write whose three tasks have prepared one row each."""

    def __init__(self, broker, topic):
        self.topic = topic
        self._proxies, self._kafka = broker.proxies, broker.kafka
        given = {"kafka.bootstrap.servers": broker.servers, "topic": topic, "apiTimeoutMs": "8000"}
        self._options = batch_write_options(given)
        recovered = plan_write(self._options)
        self._messages = []
        for number, value in enumerate(VALUES):
            task = Task(query_id=self._options.query_id, run_id="r", batch_id=0, partition=number)
            rows = iter([pa.record_batch({"value": [value]})])
            result = write_task(self._options, task, recovered, rows)
            self._messages.append(TaskMessage(task=task, result=result, recovered=recovered))

    @property
    def servers(self):
        return self._kafka.bootstrap_servers

    def disturb(self, *rules, api="EndTxn"):
        for rule in rules:
            self._proxies.by_node[NODE].add_rule(Rule(api, **rule))

    def commit(self):
        commit_write(self._options, self._messages)

    def fail(self, error):
        """As Spark does it: `commit`, and behind its error `abort`, when the broker answers."""
        with pytest.raises(error) as caught:
            self.commit()
        self._proxies.calm()
        abort_write(self._options, self._messages, len(self._messages))
        return str(caught.value)

    def states(self):
        """Of the three transactions, long after the broker got the last request for them."""
        names = [m.result.transaction.identity.transactional_id for m in self._messages]
        with closing(self._coordinator()) as coordinator:
            found = coordinator.describe(names, Deadline.after_ms(60_000))
        return sorted(found[name].state.wire_name for name in names)

    def abort_by_hand(self):
        identities = [message.result.transaction.identity for message in self._messages]
        with closing(self._coordinator()) as coordinator:
            coordinator.end(identities, committed=False, deadline=Deadline.after_ms(60_000))

    def _coordinator(self):
        return CoordinatorClient(ClientConfig.from_options({"bootstrap.servers": self.servers}))


@pytest.fixture
def write(broker, topic: TopicFactory) -> Iterator[Write]:
    yield Write(broker, topic(2, on=broker.kafka))
    broker.proxies.calm()


@pytest.mark.parametrize(
    ("rule", "known", "unknown"),
    [(LET_ONE_PASS, 1, 2), (WITHHOLD_ONE_ANSWER, 0, 3)],
    ids=["one is answered", "one is committed and its answer withheld"],
)
def test_coordinator_that_does_not_answer_leaves_a_part_and_nothing_is_aborted(
    write, rule, known, unknown
):
    write.disturb(rule, LET_NONE_PASS)
    text = write.fail(OperatorError)
    assert f"the batch write to {write.topic} may be visible in part" in text
    assert f"known to be committed: {known}; not known: {unknown} (" in text
    assert "Running the write again doubles the rows that are visible" in text
    assert "kafka.transaction.timeout.ms is 900000" in text
    assert write.states() == ["CompleteCommit", "Ongoing", "Ongoing"]
    write.abort_by_hand()
    assert_none_open(write.servers, write.topic)
    assert len(committed_values(write.servers, write.topic)) == 1


def test_failure_before_the_first_commit_request_leaves_nothing_open(write):
    write.disturb(LET_NONE_PASS, api=DESCRIBE_TRANSACTIONS)
    text = write.fail(BrokerUnreachableError)
    assert "nothing of this batch write is visible, and it can be run again" in text
    assert_exactly_once(write.servers, write.topic, [])


def test_write_whose_answers_are_withheld_for_a_moment_is_there_once(write):
    write.disturb(*[WITHHOLD_ONE_ANSWER] * 5)
    write.commit()
    assert_exactly_once(write.servers, write.topic, VALUES)
