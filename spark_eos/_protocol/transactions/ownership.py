"""Who owns a query, and is its log up to date? Pure.

Theory of operation. A query is itself a producer to Kafka: it has a transactional id of its own,
`<prefix>-<query id>-driver`, which never opens a transaction. Its producer epoch does two things.

*It fences.* A driver starts with InitProducerId, so it has an epoch that no other driver has. Each
decision moves the epoch on, by InitProducerId with the epoch that is expected (KIP-360), behind the
log and before the first EndTxn. So of two drivers only the one that started last can complete a
decision, also where each has a log of its own: a checkpoint that was copied.

*It counts.* Kafka keeps the epoch, and the log keeps a `Token` of its last move. A log that was
restored from a backup is behind the epoch, and is found out at the start of the query.

A token is where the epoch was before the move, and a mark. The mark is the transaction time-out of
the request: this id has no transaction that could time out, so the number is free, and the
coordinator keeps it and tells it with the epoch.

| mark | the move is | it is logged |
|---|---|---|
| even | a start: nothing is decided by it | after it was made, so one may be missing in the log |
| odd | of a decision | before it is made, so it was logged, here or elsewhere |

Why a stale log is found. A decision that the log does not have is an odd move, and one that was
made before it by the same driver, or a start. Seen from the log's last move, Kafka then shows an
odd mark, or is more than one move ahead. Only one even move is taken for a start that was not
logged, and the log is brought up to it before the next one is made. Why a log that is up to date is
believed: all of its moves are logged, but for that one.

Repeated and late requests. The coordinator makes the move of a decision once, however often it is
asked for. A start that arrives twice moves the epoch twice, with the same mark; the log keeps the
mark of the last start, so a driver knows its own. Two drivers that start within milliseconds, of
which one dies before it has logged its start, look like a decision that is missing: the query
stops, and a person is asked.
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

# Behind this epoch the coordinator gives a new producer id, with epoch 0.
LAST_EPOCH: Final = 32_766
_SMALLEST_MARK: Final = 2
# Of a log that knows that Kafka has forgotten the query.
NO_MARK: Final = 0
# The log's own move, and one more.
_ONE_MORE: Final = 2


class ProducerEpoch(NamedTuple):
    """An epoch of the query's own id. Epochs are counted for each producer id."""

    producer_id: int
    epoch: int

    @classmethod
    def of(cls, identity: ProducerIdentity) -> "ProducerEpoch":
        """The epoch of an identity that the coordinator told."""
        return cls(identity.producer_id, identity.producer_epoch)


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A move of the query's epoch, as the log has it. `before` is None for an id that was new.

    `place` is a short name for the cluster and the id whose epoch it is.
    """

    before: ProducerEpoch | None
    mark: int
    place: int

    @property
    def may_decide(self) -> bool:
        """Whether the move belongs to a decision."""
        return may_decide(self.mark)


class Position(Enum):
    """Where Kafka is, seen from the log."""

    CURRENT = "the last move that the log has is the last one that Kafka has"
    NOT_MOVED = "the last move that the log has was not made yet"
    TAKEN_OVER = "another driver was started since, and has decided nothing"
    AHEAD = "Kafka has a decision that the log does not have"
    FORGOTTEN = "Kafka does not know the query"
    OUTDATED = "the coordinator tells of a time before the last move: ask again"


def place_of(cluster_id: str, transactional_id: str) -> int:
    """A short name: both may be changed by options between two runs."""
    name = f"{cluster_id} {transactional_id}"
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=7).digest(), "big")


def may_decide(mark: int) -> bool:
    """Whether a move with this mark belongs to a decision."""
    return mark % 2 == 1


def new_mark(*, decides: bool, limit: int, random: float) -> int:
    """A mark up to `limit`, the largest time-out that may be asked for. 0 <= random < 1."""
    half = _SMALLEST_MARK // 2 + int(random * (limit // 2 - _SMALLEST_MARK // 2))
    return 2 * half - 1 if decides else 2 * half


def moves(before: ProducerEpoch | None, now: ProducerEpoch) -> int:
    """How often the epoch has moved."""
    if before is None:
        return now.epoch + 1
    if before.producer_id == now.producer_id:
        return now.epoch - before.epoch
    return LAST_EPOCH - before.epoch + 1 + now.epoch


def is_next(before: ProducerEpoch | None, now: ProducerEpoch) -> bool:
    """Whether `now` is the answer to one move. An id that the coordinator has forgotten, or whose
    epochs are used up, starts again with another producer id.
    """
    is_new_id = before is not None and before.producer_id != now.producer_id
    return moves(before, now) == 1 or (is_new_id and now.epoch == 0)


def unknown_position(found: TransactionDescription | None) -> Position:
    """The same for a log that has no move of the query. The first move is always a start."""
    if found is None:
        return Position.FORGOTTEN
    count = moves(None, ProducerEpoch.of(found.identity))
    is_start = count <= _ONE_MORE and not may_decide(found.timeout_ms)
    return Position.TAKEN_OVER if is_start else Position.AHEAD


def before(now: ProducerEpoch) -> ProducerEpoch | None:
    """Where the epoch was before its last move; None for the first epoch of a producer id."""
    return ProducerEpoch(now.producer_id, now.epoch - 1) if now.epoch > 0 else None


def position(token: Token, start_mark: int, found: TransactionDescription | None) -> Position:
    """Compare the log's last move with what the coordinator has.

    `start_mark` is that of the last start in the log.
    """
    if found is None:
        return Position.FORGOTTEN
    now, mark = ProducerEpoch.of(found.identity), found.timeout_ms
    count = moves(token.before, now)
    if now == token.before:
        return Position.NOT_MOVED
    if count < 0:
        return Position.OUTDATED
    if mark == token.mark and (count <= _ONE_MORE or is_next(token.before, now)):
        return Position.CURRENT  # one more: the request of its own start has arrived once more
    if mark == start_mark and count <= _ONE_MORE:  # the same
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
    """What shows that the coordinator is at a time before commits that are complete, if it is.

    `committed` are the transactions of a complete batch, `driver` is the query's own id. Its epoch
    alone does not tell each of these times: a snapshot of Kafka may have the move of the last
    decision without the commits that follow it, or be just one move behind.
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
