"""Pure. Who owns a query, and whether its log is up to date.

Theory of operation. A query is itself a producer to Kafka: its id `<prefix>-<query id>-driver`
never opens a transaction. The producer epoch of this id does two things.

*It fences.* A driver starts with InitProducerId, so its epoch is its own. Each decision moves the
epoch on, by InitProducerId with the expected epoch (KIP-360), after the log and before the first
EndTxn. So of two drivers only the one that started last can complete a decision. This holds also if
each has its own log, from a copied checkpoint.

*It counts.* Kafka keeps the epoch, and the log keeps a `Token` of its last move. A start detects a
log that was restored from a backup, because the epoch has moved since.

A token is the epoch before the move, and a mark. The mark is the transaction time-out of the
request: no transaction of this id can time out, so the number is free. The coordinator keeps it and
returns it with the epoch.

| mark | the move is | it is logged |
|---|---|---|
| even | a start: it decides nothing | after it is made, so one may be missing in the log |
| odd | of a decision | before it is made, so it is in this log or in another one |

Why a stale log is detected. A decision that the log does not have is an odd move. The same driver
made the move before it: a decision or its start. So, after the log's last move, Kafka has an odd
mark or more than one move. One even move alone is a start that was not logged. The log gets it
before the next move is made, so a log that is up to date lacks no other move.

Repeated and late requests. The coordinator makes the move of a decision once, however often it is
asked. A start that arrives twice moves the epoch twice with the same mark. The log keeps the mark
of the last start, so a driver knows its own. If two drivers start within milliseconds and one dies
before it logs its start, a decision seems to be missing. The query stops and a person decides.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple

from spark_eos._protocol.transactions.state import COMMITTED_STATES
from spark_eos._protocol.transactions.transaction import (
    ProducerIdentity,
    TransactionDescription,
    TransactionRecord,
)

# After this epoch the coordinator gives a new producer id with epoch 0.
LAST_EPOCH: Final = 32_766
_SMALLEST_MARK: Final = 2
# The mark in a log that knows that Kafka has forgotten the query.
NO_MARK: Final = 0
# The log's own move, and one more.
_ONE_MORE: Final = 2


class ProducerEpoch(NamedTuple):
    """An epoch of the query's own id. Each producer id has epochs of its own."""

    producer_id: int
    epoch: int

    @classmethod
    def of(cls, identity: ProducerIdentity) -> "ProducerEpoch":
        """The epoch of an identity that the coordinator returned."""
        return cls(identity.producer_id, identity.producer_epoch)


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A move of the epoch that `place` names, as the log has it. `before` is None for a new id."""

    before: ProducerEpoch | None
    mark: int
    place: int

    @property
    def may_decide(self) -> bool:
        """Whether the move belongs to a decision."""
        return may_decide(self.mark)


class Position(Enum):
    """Where Kafka is, relative to the log."""

    CURRENT = "the last move in the log is the last move in Kafka"
    NOT_MOVED = "the last move in the log is not made yet"
    TAKEN_OVER = "another driver has started since, but has decided nothing"
    AHEAD = "Kafka has a decision that the log does not have"
    FORGOTTEN = "Kafka does not know the query"
    OUTDATED = "the coordinator's answer is older than the last move: ask again"


def place_of(cluster_id: str, transactional_id: str) -> int:
    """A short name of cluster and id. Options may change both between two runs."""
    name = f"{cluster_id} {transactional_id}"
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=7).digest(), "big")


def may_decide(mark: int) -> bool:
    """Whether a move with this mark belongs to a decision."""
    return mark % 2 == 1


def new_mark(*, decides: bool, limit: int, random: float) -> int:
    """A mark up to `limit`, the largest time-out that Kafka allows. 0 <= random < 1."""
    half = _SMALLEST_MARK // 2 + int(random * (limit // 2 - _SMALLEST_MARK // 2))
    return 2 * half - 1 if decides else 2 * half


def moves(before: ProducerEpoch | None, now: ProducerEpoch) -> int:
    """The number of moves of the epoch."""
    if before is None:
        return now.epoch + 1
    if before.producer_id == now.producer_id:
        return now.epoch - before.epoch
    return LAST_EPOCH - before.epoch + 1 + now.epoch


def is_next(before: ProducerEpoch | None, now: ProducerEpoch) -> bool:
    """Whether `now` can be one move later. A forgotten or used-up id gets another producer id."""
    is_new_id = before is not None and before.producer_id != now.producer_id
    return moves(before, now) == 1 or (is_new_id and now.epoch == 0)


def unknown_position(found: TransactionDescription | None) -> Position:
    """The position of a log without a move of the query. The first move is always a start."""
    if found is None:
        return Position.FORGOTTEN
    count = moves(None, ProducerEpoch.of(found.identity))
    is_start = count <= _ONE_MORE and not may_decide(found.timeout_ms)
    return Position.TAKEN_OVER if is_start else Position.AHEAD


def before(now: ProducerEpoch) -> ProducerEpoch | None:
    """The epoch before the last move; None for the first epoch of a producer id."""
    return ProducerEpoch(now.producer_id, now.epoch - 1) if now.epoch > 0 else None


def position(token: Token, start_mark: int, found: TransactionDescription | None) -> Position:
    """Compare Kafka with the log's last move. `start_mark` is of the last start in the log."""
    if found is None:
        return Position.FORGOTTEN
    now, mark = ProducerEpoch.of(found.identity), found.timeout_ms
    count = moves(token.before, now)
    if now == token.before:
        return Position.NOT_MOVED
    if count < 0:
        return Position.OUTDATED
    if mark == token.mark and (count <= _ONE_MORE or is_next(token.before, now)):
        return Position.CURRENT  # one more: the request of its own start has arrived twice
    if mark == start_mark and count <= _ONE_MORE:  # one more: as above
        return Position.CURRENT if count == _ONE_MORE else Position.NOT_MOVED
    if count <= _ONE_MORE and not may_decide(mark):
        return Position.TAKEN_OVER
    return Position.AHEAD


def sign_of_restored_kafka(
    committed: Iterable[TransactionRecord],
    found: Mapping[str, TransactionDescription | None],
    driver: TransactionDescription | None,
    where: Position,
) -> TransactionDescription | None:
    """What shows that Kafka was restored to a time before the `committed` transactions, if it was.

    They are the transactions of a complete batch; `driver` is the query's own id. Its epoch alone
    does not show every such time: a snapshot of Kafka may have the last decision's move without the
    commits after it, or may lack only that move.
    """
    unknown = False
    for record in committed:
        identity, now = record.identity, found.get(record.identity.transactional_id)
        is_same_id = now is not None and now.identity.producer_id == identity.producer_id
        if now is None or not is_same_id or now.identity.producer_epoch > identity.producer_epoch:
            unknown = True
        elif now.identity != identity or now.state not in COMMITTED_STATES:
            return now
    return driver if unknown and where is Position.NOT_MOVED else None
