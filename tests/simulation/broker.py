"""A broker in memory: transaction coordinator, partitions and consumer groups, one request at once.

It follows Kafka's own rules, as a client sees them that stays on EndTxn version 4. `contract.py`
holds it to what the real broker answers. Two things are left out, because a client hides them: the
moment between an intent and its markers (CONCURRENT_TRANSACTIONS, retried), and the network.
"""

import copy
from collections import defaultdict
from dataclasses import dataclass, field, replace
from enum import Enum

from spark_eos._protocol.transactions.outcome import ErrorCode
from spark_eos._protocol.transactions.state import TransactionState as State
from spark_eos._protocol.transactions.transaction import ProducerIdentity

Place = tuple[str, int]  # a topic and the number of a partition
EPOCH_MAX = 32767

COMMIT, ABORT = "COMMIT", "ABORT"


class Visible(Enum):
    """What a read_committed reader makes of an offset."""

    YES = "visible"
    NO = "aborted, or a marker"
    HELD = "at or behind the last stable offset"


class RefusedError(Exception):
    """A request that the broker refuses, with Kafka's code."""

    def __init__(self, code):
        super().__init__(code.name)
        self.code = code


@dataclass(frozen=True)
class Record:
    """One entry of a partition. `marker` is COMMIT or ABORT for a control record."""

    producer_id: int
    producer_epoch: int
    value: bytes | None = None
    marker: str | None = None

    def __deepcopy__(self, memo):
        return self


@dataclass
class Transaction:
    """What the coordinator keeps of one transactional id."""

    transactional_id: str
    producer_id: int
    timeout_ms: int
    producer_epoch: int = 0
    state: State = State.EMPTY
    start_time_ms: int | None = None
    last_epoch: int = -1  # the one before, where the last request said which it expected
    last_producer_id: int = -1
    places: list[Place] = field(default_factory=list)
    offsets: dict[str, dict[Place, int]] = field(default_factory=dict)  # by group, not yet its own

    def __deepcopy__(self, memo):
        offsets = {group: dict(moved) for group, moved in self.offsets.items()}
        return replace(self, places=list(self.places), offsets=offsets)

    @property
    def identity(self):
        return ProducerIdentity(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
        )


class Broker:
    """Answers requests. What a request may not do raises RefusedError; EndTxn returns its code."""

    def __init__(self, topics, first_epoch=0):
        self.topics = topics  # name: number of partitions
        self.log = {(topic, p): [] for topic, count in topics.items() for p in range(count)}
        self.topic_ids = {topic: f"id of the first {topic}" for topic in topics}
        self.transactions = {}
        self.groups = defaultdict(dict)
        self.members = defaultdict(list)
        self.now_ms = 0
        self._first_epoch = first_epoch
        self._next_producer_id = 1000
        self._ongoing = {place: {} for place in self.log}  # producer id: its first offset
        self._aborted = {place: [] for place in self.log}  # (producer id, first, last offset)

    def __deepcopy__(self, memo):
        """Each crash point starts from a copy: in general it would take a quarter of the time."""
        new = copy.copy(self)
        new.topic_ids = dict(self.topic_ids)
        new.log = {place: list(entries) for place, entries in self.log.items()}
        new.transactions = {n: copy.deepcopy(t) for n, t in self.transactions.items()}
        new.groups = defaultdict(dict, {group: dict(at) for group, at in self.groups.items()})
        new.members = defaultdict(list, {group: list(m) for group, m in self.members.items()})
        new._ongoing = {place: dict(opened) for place, opened in self._ongoing.items()}
        new._aborted = {place: list(aborted) for place, aborted in self._aborted.items()}
        return new

    def init_producer_id(self, transactional_id, timeout_ms, expected=None):
        """A new epoch. What is open is fenced first, with an epoch of its own, and aborted.

        Where a producer id and an epoch are `expected` (KIP-360), only from there. A request that
        comes again moves nothing and gets the same answer, but sets the time-out.
        """
        found = self.transactions.get(transactional_id)
        if found is not None and expected is not None:
            if expected == (found.last_producer_id, found.last_epoch):
                found.timeout_ms = timeout_ms
                return found.identity
            if expected != (found.producer_id, found.producer_epoch):
                raise RefusedError(ErrorCode.PRODUCER_FENCED)
        if found is None:
            # A worn id is a task's: the epochs of a query's own id are counted from the first.
            epoch = 0 if transactional_id.endswith("-driver") else self._first_epoch
            found = Transaction(transactional_id, self._new_producer_id(), timeout_ms, epoch)
            self.transactions[transactional_id] = found
            return found.identity
        if found.state is State.ONGOING:
            self._fence(found)
        found.last_producer_id, found.last_epoch = expected or (-1, -1)
        if found.producer_epoch >= EPOCH_MAX - 1:
            found.producer_id, found.producer_epoch = self._new_producer_id(), 0
        else:
            found.producer_epoch += 1
        found.state, found.timeout_ms, found.start_time_ms = State.EMPTY, timeout_ms, None
        return found.identity

    def add_partition(self, identity, place):
        """AddPartitionsToTxn: opens the transaction when it is the first."""
        found = self._owned(identity)
        self._open(found)
        if place not in found.places:
            found.places.append(place)

    def produce(self, identity, place, value):
        """Append a record to a partition that was added to the transaction; returns its offset."""
        found = self._owned(identity)
        if found.state is not State.ONGOING or place not in found.places:
            raise RefusedError(ErrorCode.INVALID_TXN_STATE)
        offset = len(self.log[place])
        self.log[place].append(Record(identity.producer_id, identity.producer_epoch, value))
        self._ongoing[place].setdefault(identity.producer_id, offset)
        return offset

    def add_offsets(self, identity, group):
        """AddOffsetsToTxn: opens the transaction when it is the first."""
        found = self._owned(identity)
        self._open(found)
        found.offsets.setdefault(group, {})

    def txn_offset_commit(self, identity, group, offsets):
        """TxnOffsetCommit: pending until the transaction ends."""
        found = self._owned(identity)
        if found.state is not State.ONGOING or group not in found.offsets:
            raise RefusedError(ErrorCode.INVALID_TXN_STATE)
        found.offsets[group].update(offsets)

    def end_txn(self, identity, *, committed):
        """EndTxn version 4; returns the error code."""
        try:
            found = self._owned(identity)
        except RefusedError as refused:
            return refused.code
        if found.state is State.ONGOING:
            self._end(found, committed=committed)
            return ErrorCode.NONE
        ended = State.COMPLETE_COMMIT if committed else State.COMPLETE_ABORT
        return ErrorCode.NONE if found.state is ended else ErrorCode.INVALID_TXN_STATE

    def time_out(self, transactional_id):
        """What the coordinator does to a transaction that is open for too long."""
        found = self.transactions[transactional_id]
        if found.state is State.ONGOING:
            self._fence(found)

    def expire(self, transactional_id):
        """What the coordinator does to an id that nobody has used for a week."""
        if self.transactions[transactional_id].state is not State.ONGOING:
            del self.transactions[transactional_id]

    def in_state(self, state):
        """ListTransactions, in the order in which they were opened."""
        found = [t for t in self.transactions.values() if t.state is state]
        return sorted(found, key=lambda t: t.start_time_ms)

    def ongoing(self):
        """The ids that are open."""
        return [t.transactional_id for t in self.in_state(State.ONGOING)]

    def last_stable_offset(self, place):
        return min(self._ongoing[place].values(), default=len(self.log[place]))

    def visible(self, place, offset):
        """What read_committed makes of one offset."""
        record = self.log[place][offset]
        if offset >= self.last_stable_offset(place):
            return Visible.HELD
        if record.marker or any(
            producer_id == record.producer_id and first <= offset <= last
            for producer_id, first, last in self._aborted[place]
        ):
            return Visible.NO
        return Visible.YES

    def committed_offsets(self, group):
        """The group's offsets; None while a transaction that moves them is open."""
        if any(t.offsets.get(group) for t in self.transactions.values()):
            return None
        return dict(self.groups[group])

    def _owned(self, identity):
        found = self.transactions.get(identity.transactional_id)
        if found is None or found.producer_id != identity.producer_id:
            raise RefusedError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        if found.producer_epoch != identity.producer_epoch:
            raise RefusedError(ErrorCode.PRODUCER_FENCED)
        return found

    def _open(self, found):
        if found.state is not State.ONGOING:
            self.now_ms += 1  # so that the order of opening can be told
            found.state, found.start_time_ms = State.ONGOING, self.now_ms
            found.places, found.offsets = [], {}

    def _fence(self, found):
        """Abort with an epoch that no producer has. Behind the last one is another producer id."""
        found.producer_epoch += 1
        self._end(found, committed=False)
        if found.producer_epoch == EPOCH_MAX:
            found.producer_id, found.producer_epoch = self._new_producer_id(), 0

    def _end(self, found, *, committed):
        for place in found.places:
            marker = COMMIT if committed else ABORT
            first = self._ongoing[place].pop(found.producer_id, None)
            if first is not None and not committed:
                last = len(self.log[place]) - 1
                self._aborted[place].append((found.producer_id, first, last))
            self.log[place].append(Record(found.producer_id, found.producer_epoch, marker=marker))
        if committed:
            for group, offsets in found.offsets.items():
                self.groups[group].update(offsets)
        found.offsets = {}
        found.state = State.COMPLETE_COMMIT if committed else State.COMPLETE_ABORT

    def _new_producer_id(self):
        self._next_producer_id += 1
        return self._next_producer_id
