# ruff: noqa: ARG002 - the signatures are the product's
"""The clients that the product calls, on the broker in memory.

Each has the methods and the failures of the product's own class of that name, and no more.
"""

import json

from spark_eos.errors import (
    BrokerUnreachableError,
    DeliveryError,
    GroupInUseError,
    RetriableError,
)
from spark_eos.kafka.coordinator import EndAnswer, TransactionListing
from spark_eos.protocol.fate import Fate
from spark_eos.protocol.offset_map import from_map
from spark_eos.protocol.outcome import Api, ErrorCode, Outcome, outcome_of
from spark_eos.protocol.ownership import ProducerEpoch
from spark_eos.protocol.state import TransactionState
from spark_eos.protocol.transaction import (
    PartitionOffsets,
    PreparedTransaction,
    TransactionDescription,
)
from tests.simulation.broker import RefusedError, Visible
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


def fates(config, transactions, deadline):
    """`kafka.visibility`: what read_committed makes of the last record of each transaction."""

    def effect():
        found = {}
        for key, partitions in transactions:
            seen = {_broker().visible((p.topic, p.partition), p.last_offset) for p in partitions}
            if not seen:
                found[key] = Fate.GONE
            elif seen == {Visible.HELD}:
                found[key] = Fate.OPEN
            else:
                found[key] = Fate.COMMITTED if Visible.YES in seen else Fate.ABORTED
        return found

    return port("Fetch", effect, _no_answer) if transactions else {}


def read_file(checkpoint, name):
    """`recovery.checkpoint`: a file of Spark's, or None."""
    return port(f"read {name}", lambda: current().world.files.get(name), _no_file)


def list_files(checkpoint, folder):
    """`recovery.checkpoint`: the names in a folder of Spark's."""
    return port(f"list {folder}", lambda: current().world.names_in(folder), _no_file)


def _no_file():
    raise RetriableError("the checkpoint cannot be read")


def topic_ids(config, topics, deadline):
    """`kafka.cluster`."""

    def effect():
        return {topic: _broker().topic_ids.get(topic) for topic in topics}

    return port("Metadata ids", effect, _no_answer)


def partition_counts(config, topics, deadline):
    """`kafka.cluster`."""
    return port("Metadata", lambda: {t: _broker().topics[t] for t in topics}, _no_answer)


def end_offsets(config, partitions, deadline):
    """`kafka.cluster`: nobody writes the source's topic here, so there is no end to tell."""
    return port("ListOffsets", dict, _no_answer)


def check_cluster(options, deadline):
    """`sink.cluster`: here the cluster takes everything, if it answers."""
    port("DescribeConfigs", lambda: None, _no_answer)


def group_metadata(config, group_id):
    """`kafka.group`: what names the group in a transaction. Asks nobody."""
    return group_id


def check_not_in_use(config, group_id, deadline):
    """`kafka.group`."""
    members = port("DescribeGroups", lambda: list(_broker().members[group_id]), _no_answer)
    if members:
        raise GroupInUseError(f"{members[0]} is a member")


def offsets_fate(config, group_id, wanted, deadline):
    """`kafka.group`, which reads stable offsets: none while a transaction moves them."""

    def effect():
        now = _broker().committed_offsets(group_id)
        if now is None:
            _no_answer()
        moved = all(now.get(p, -1) >= offset for p, offset in from_map(json.loads(wanted)).items())
        return Fate.COMMITTED if moved else Fate.ABORTED

    return port("OffsetFetch", effect, _no_answer)


def restore_group_offsets(config, group_id, source_offsets, deadline):
    """`recovery.group_offsets`: nothing expires here; an open transaction is awaited."""
    if port("OffsetFetch", lambda: _broker().committed_offsets(group_id), _no_answer) is None:
        raise BrokerUnreachableError("the group has offsets in a transaction that is open")
    return {}
