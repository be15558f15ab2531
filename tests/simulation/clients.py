# ruff: noqa: ARG002 - the signatures are the product's
"""The clients that the product calls, on the broker in memory.

Each has the methods and the failures of the product's own class of that name, and no more.
"""

import json

from spark_eos._checkpoint.checkpoint import Checkpoint
from spark_eos._kafka.coordinator.client import EndAnswer, TransactionListing
from spark_eos._log import TransactionLog
from spark_eos._protocol.offsets.offset_map import from_map
from spark_eos._protocol.offsets.topic_partition import PartitionOffsets
from spark_eos._protocol.transactions.fate import Fate
from spark_eos._protocol.transactions.outcome import Api, ErrorCode, Outcome, outcome_of
from spark_eos._protocol.transactions.ownership import ProducerEpoch
from spark_eos._protocol.transactions.state import TransactionState
from spark_eos._protocol.transactions.transaction import PreparedTransaction, TransactionDescription
from spark_eos._session import Session, Sessions
from spark_eos.errors import (
    BrokerUnreachableError,
    DeliveryError,
    GroupInUseError,
    RetriableError,
)
from tests.simulation.broker import RefusedError, Visible
from tests.simulation.log import Table
from tests.simulation.process import Clock, current, port


def _broker():
    return current().world.broker


def _short(transactional_id):
    """The last part of an id: the partition, or `offsets`."""
    return transactional_id.rsplit("-", 1)[1]


def _no_answer():
    raise BrokerUnreachableError("no answer within the deadline")


def _not_taken():
    raise DeliveryError("no answer within the deadline")


class CoordinatorClient:
    """Asks one id after the other, so that a crash can come between any two."""

    def __init__(self, config):
        pass

    def end(self, transactions, *, committed, deadline):
        ordered = list(transactions)
        if current().world.workload.backwards:
            ordered.reverse()
        return {t.transactional_id: self._end(t, committed) for t in ordered}

    def _end(self, identity, committed):
        def effect():
            code = _broker().end_txn(identity, committed=committed)
            return EndAnswer(outcome=outcome_of(Api.END_TXN, code), code=code)

        word = "commit" if committed else "abort"
        return port(f"EndTxn({word}) {_short(identity.transactional_id)}", effect, _unknown)

    def await_leaders(self, partitions, topic_ids, deadline):
        def effect():
            now = {topic: _broker().topic_ids.get(topic) for topic in topic_ids}
            return {topic: now[topic] for topic in now if now[topic] != topic_ids[topic]}

        return port("Metadata leaders", effect, _no_answer) if partitions else {}

    def describe(self, transactional_ids, deadline):
        def effect():
            return {name: _description(name) for name in transactional_ids}

        is_task = any(not name.endswith("-driver") for name in transactional_ids)
        name = "DescribeTransactions" if is_task else "DescribeTransactions driver"
        return port(name, effect, _no_answer)

    def fence(self, transactional_ids, *, timeout_ms, deadline):
        return {
            name: port(
                f"InitProducerId {_short(name)}",
                lambda name=name: _broker().init_producer_id(name, timeout_ms),
                _no_answer,
            )
            for name in transactional_ids
        }

    def start_driver(self, transactional_id, mark, deadline):
        return port(
            f"InitProducerId {_short(transactional_id)}",
            lambda: _epoch(_broker().init_producer_id(transactional_id, mark)),
            lambda: None,
        )

    def move_driver(self, transactional_id, token, deadline):
        def effect():
            try:
                found = _broker().init_producer_id(transactional_id, token.mark, token.before)
            except RefusedError:
                return None
            return _epoch(found)

        name = f"InitProducerId {_short(transactional_id)}, expected"
        return port(name, effect, _no_answer)

    def cluster_id(self, deadline):
        return "simulated"  # known since the first answer: no request

    def list_open(self, deadline):
        return self._list(TransactionState.ONGOING)

    def list_committed(self, deadline):
        return self._list(TransactionState.COMPLETE_COMMIT)

    def _list(self, state):
        def effect():
            return [
                TransactionListing(
                    transactional_id=found.transactional_id,
                    producer_id=found.producer_id,
                    state=state,
                )
                for found in _broker().in_state(state)
            ]

        return port(f"ListTransactions {state.wire_name}", effect, _no_answer)


def _epoch(identity):
    return ProducerEpoch(identity.producer_id, identity.producer_epoch)


def _unknown():
    return EndAnswer(outcome=Outcome.UNKNOWN, code=ErrorCode.REQUEST_TIMED_OUT)


def _description(name):
    found = _broker().transactions.get(name)
    if found is None:
        return None
    started = None if found.start_time_ms is None else Clock.START * 1000 + found.start_time_ms
    return TransactionDescription(
        identity=found.identity,
        state=found.state,
        timeout_ms=found.timeout_ms,
        start_time_ms=started,
    )


class TransactionalProducer:
    """One task attempt's producer. Rows are sent one by one, so that a crash can tear them."""

    def __init__(self, config, transactional_id, *, timeout_ms, send_timeout_ms):
        self._name = transactional_id
        self._timeout_ms = timeout_ms
        self._identity = None
        self._offsets = {}

    def partition_count(self, topic, deadline):
        return port(f"Metadata {topic}", lambda: _broker().topics[topic], _no_answer)

    def begin(self, deadline):
        self._identity = port(
            f"InitProducerId {_short(self._name)}",
            lambda: _broker().init_producer_id(self._name, self._timeout_ms),
            _not_taken,
        )

    def send(self, rows):
        for value, partition in zip(rows.values, rows.partitions, strict=True):
            place = (rows.topic, partition)
            if place not in self._offsets:
                # As a client does it: a partition is added once, and then written to.
                name = f"AddPartitionsToTxn {partition}"
                self._ask(name, _broker().add_partition, self._identity, place)
                self._offsets[place] = []
            name = f"Produce {value.decode()}"
            self._offsets[place].append(
                self._ask(name, _broker().produce, self._identity, place, value)
            )

    def flush(self, deadline):
        """Rows are sent at once, so there is nothing to wait for."""

    def send_offsets(self, offsets, metadata, deadline):
        self._ask("AddOffsetsToTxn", _broker().add_offsets, self._identity, metadata)
        self._ask("TxnOffsetCommit", _broker().txn_offset_commit, self._identity, metadata, offsets)

    def prepare(self, deadline):
        return PreparedTransaction(
            identity=self._identity,
            transaction_timeout_ms=self._timeout_ms,
            partitions=tuple(
                PartitionOffsets(
                    topic=topic,
                    partition=partition,
                    first_offset=offsets[0],
                    last_offset=offsets[-1],
                    records=len(offsets),
                )
                for (topic, partition), offsets in sorted(self._offsets.items())
            ),
        )

    def abort(self, deadline):
        port(
            f"EndTxn(abort) {_short(self._name)}",
            lambda: _broker().end_txn(self._identity, committed=False),
            lambda: None,
        )

    def _ask(self, name, request, *arguments):
        try:
            return port(name, lambda: request(*arguments), _not_taken)
        except RefusedError as refused:
            raise DeliveryError(f"{self._name}: {refused}") from None


class ConsumerGroups:
    """The groups of the cluster."""

    def metadata(self, group_id):
        """What names the group in a transaction. Asks nobody."""
        return group_id

    def check_not_in_use(self, group_id, deadline):
        members = port("DescribeGroups", lambda: list(_broker().members[group_id]), _no_answer)
        if members:
            raise GroupInUseError(f"{members[0]} is a member")

    def committed_offsets(self, group_id, partitions, deadline):
        """Stable ones: none while a transaction moves them."""

        def effect():
            now = _broker().committed_offsets(group_id)
            return now if now is not None else _no_answer()

        now = port("OffsetFetch", effect, _no_answer)
        return {place: now[place] for place in partitions if place in now}

    def put_offsets(self, group_id, offsets, deadline):
        def effect():
            _broker().groups[group_id].update(offsets)
            return offsets

        return port("OffsetCommit", effect, _no_answer)

    def offsets_fate(self, group_id, wanted, deadline):
        logged = from_map(json.loads(wanted))
        now = self.committed_offsets(group_id, list(logged), deadline)
        moved = all(now.get(place, -1) >= offset for place, offset in logged.items())
        return Fate.COMMITTED if moved else Fate.ABORTED


class ClusterMetadata:
    """What the broker says of itself."""

    def max_transaction_timeout_ms(self, deadline):
        return port("DescribeConfigs", lambda: None, _no_answer)

    def partition_counts(self, topics, deadline):
        def effect():
            return {topic: _broker().topics[topic] for topic in topics}

        return port("DescribeTopicPartitions", effect, _no_answer)

    def topic_ids(self, topics, deadline):
        def effect():
            return {topic: _broker().topic_ids.get(topic) for topic in topics}

        return port("Metadata ids", effect, _no_answer)

    def end_offsets(self, partitions, deadline):
        """Nobody writes the source's topic here, so there is no end to tell."""
        return port("ListOffsets", dict, _no_answer)


class Cluster:
    """The broker in memory. It takes every job, if it answers."""

    def __init__(self, config):
        self.config = config
        self.coordinator = CoordinatorClient(config)
        self.groups = ConsumerGroups()
        self.metadata = ClusterMetadata()

    def producer(self, transactional_id, *, batch_id, timeout_ms, send_timeout_ms):
        return TransactionalProducer(
            self.config, transactional_id, timeout_ms=timeout_ms, send_timeout_ms=send_timeout_ms
        )

    def check_config(self):
        """There is no client that could refuse it."""

    def fates(self, transactions, deadline):
        """What read_committed makes of the last record of each transaction."""

        def effect():
            found = {}
            for key, partitions in transactions:
                seen = {
                    _broker().visible((p.topic, p.partition), p.last_offset) for p in partitions
                }
                if not seen:
                    found[key] = Fate.GONE
                elif seen == {Visible.HELD}:
                    found[key] = Fate.OPEN
                else:
                    found[key] = Fate.COMMITTED if Visible.YES in seen else Fate.ABORTED
            return found

        return port("Fetch", effect, _no_answer) if transactions else {}


class SimulatedCheckpoint(Checkpoint):
    """Spark's files, as the world has them."""

    def _read(self, name):
        return port(f"read {name}", lambda: current().world.files.get(name), _no_file)

    def _list(self, folder):
        return port(f"list {folder}", lambda: current().world.names_in(folder), _no_file)


def _no_file():
    raise RetriableError("the checkpoint cannot be read")


class SimulatedSession(Session):
    """What a process of the simulation has in hand."""

    clock = Clock()

    @staticmethod
    def chance():
        return current().world.chance()

    @property
    def driver(self):
        return current().driver

    @staticmethod
    def connect(config):
        return Cluster(config)

    @staticmethod
    def open_checkpoint(location):
        return SimulatedCheckpoint(location)

    @staticmethod
    def open_log(location, *, checkpoint):  # noqa: ARG004
        return TransactionLog(location, Table())


def session_of(options, query_id=None):
    """`spark_eos._session`: each process keeps its own."""
    if current().sessions is None:
        current().sessions = Sessions(SimulatedSession)
    return current().sessions.of(options, query_id)
