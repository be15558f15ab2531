"""Planner and commit worker. Take a query over, and stop if its log is not the newest.

The reasons are in `_protocol/transactions/ownership.py`. A driver starts a query before it recovers
it. From then on an older driver cannot log anything (Delta) or complete a decision (Kafka). A
driver is a Spark application with a log: a query that is restarted in it needs no new start.
"""

import logging
from typing import Final, NamedTuple

from spark_eos._deadline import OUTDATED_S, Backoff, Deadline
from spark_eos._endtxn.decided_here import check_decided_here
from spark_eos._protocol.transactions.acknowledgement import (
    NO_BATCH,
    Risk,
    acknowledged_row,
    acknowledgement,
)
from spark_eos._protocol.transactions.ownership import (
    NO_MARK,
    Position,
    ProducerEpoch,
    Token,
    before,
    is_next,
    new_mark,
    place_of,
    position,
    sign_of_restored_kafka,
    unknown_position,
)
from spark_eos._protocol.transactions.transaction import TransactionDescription, TransactionRecord
from spark_eos._protocol.transactions.transactional_id import driver_id, parse_transactional_id
from spark_eos._recovery.lost_log import check_log_is_the_querys
from spark_eos._session import Session
from spark_eos.errors import (
    BrokerUnreachableError,
    FencedError,
    OperatorError,
    SparkEosError,
    StaleLogError,
)

_LOG = logging.getLogger(__name__)

_SHOWN_IDS: Final = 4
# A driver that goes on from one of these positions logs first what Kafka has.
_UNLOGGED: Final = (Position.TAKEN_OVER, Position.FORGOTTEN, Position.AHEAD, Position.OUTDATED)

Descriptions = dict[str, TransactionDescription | None]


class _Look(NamedTuple):
    """The id whose epoch the log knows, what Kafka has of it, and how that fits to the log."""

    name: str
    found: TransactionDescription | None
    where: Position


class Ownership:
    """The claim of this driver on one query."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.query_id = session.query_id
        self.log = session.log
        self.coordinator = session.cluster.coordinator
        self._accepted: str | None = None

    @property
    def transactional_id(self) -> str:
        """The query's own id, under the prefix of this start."""
        return driver_id(self.session.options.transactional_id_prefix, self.query_id)

    def take_over(self, deadline: Deadline) -> None:
        """Make this driver the one that may decide. Raises if the log is older than Kafka."""
        # Checked before a start is logged: a cluster that is named by mistake must leave no trace.
        check_decided_here(self.session, self._unfinished(), deadline)
        look = self._checked(deadline)
        is_owner = self.log.driver(self.query_id) == self.session.driver
        if not is_owner or look.where not in (Position.CURRENT, Position.NOT_MOVED):
            self._start(look, deadline)
        token = self.log.token(self.query_id)
        # A pending decision is completed under the new epoch, so the epoch must say "decided".
        completes = self._pending() and token is not None and not token.may_decide
        # With a new prefix, the decisions to come move another id and not this one.
        if completes or look.name != self.transactional_id:
            self._log_move(look.name, deadline)

    def _checked(self, deadline: Deadline) -> _Look:
        """As `_look`. Raises also if the log cannot be the one that the query wrote to."""
        while True:
            look = self._look(deadline)
            seen = self.log.token(self.query_id)
            # AHEAD is returned only if a person has accepted that the log is older.
            if look.where is not Position.AHEAD:
                check_log_is_the_querys(self.session, deadline)
            # If the token has changed, another driver was started after the look at Kafka.
            if self.log.token(self.query_id) == seen:
                return look

    def _look(self, deadline: Deadline, mark: int | None = None) -> _Look:
        """Compare Kafka with the log, and again while they do not fit: another driver may be about
        to log its start, or a coordinator may be outdated. `mark` is that of this driver's start.
        """
        backoff = Backoff(deadline.at_most_s(OUTDATED_S))
        while True:
            name, committed = self._logged_id(deadline), self._committed(deadline)
            ids = [record.identity.transactional_id for record in committed]
            descriptions = self.coordinator.describe([name, *ids], deadline)
            found = sign = descriptions[name]
            where = self._position(name, found, deadline)
            restored = sign_of_restored_kafka(committed, descriptions, found, where)
            if restored is not None:
                where, sign = Position.OUTDATED, restored
            if sign is None or where not in (Position.AHEAD, Position.OUTDATED):
                return _Look(name, found, where)
            if self._log_has_moved():
                continue
            may_pass = where is Position.OUTDATED or mark == sign.timeout_ms
            if not may_pass or not backoff.wait():
                self._accept_or_raise(where, sign, deadline)
                return _Look(name, found, where)

    def _start(self, look: _Look, deadline: Deadline) -> None:
        """Move the epoch to one that no other driver has, and log it."""
        backoff = Backoff(deadline)
        mark = self._new_mark(decides=False)
        while True:
            started = self._started(look, mark, deadline)
            if started is not None and self._log_start(look.name, started, mark, deadline):
                return
            if not backoff.wait():
                raise BrokerUnreachableError(
                    "query {query_id} could not be taken over within the deadline. Other drivers"
                    " start it too, or its coordinator does not answer. Start it again",
                    query_id=self.query_id,
                )
            self.log.refresh()
            look = self._look(deadline, mark)

    def _started(self, look: _Look, mark: int, deadline: Deadline) -> ProducerEpoch | None:
        """The epoch of this driver's start; None if the driver has to look again."""
        name, found, where = look
        seen = None if found is None else ProducerEpoch.of(found.identity)
        if found is not None and found.timeout_ms == mark:
            return seen  # an earlier request was made, but its answer was lost
        is_new = found is None and self.log.token(self.query_id) is None
        if where in _UNLOGGED and not is_new:
            # The log must not fall behind by two moves.
            seen_mark = NO_MARK if found is None else found.timeout_ms
            if not self._log_start(name, seen, seen_mark, deadline):
                return None
        started = self.coordinator.start_driver(name, mark, deadline)
        return started if started is not None and is_next(seen, started) else None

    def _log_start(
        self, name: str, now: ProducerEpoch | None, mark: int, deadline: Deadline
    ) -> bool:
        """Log where the epoch is. Returns False if another driver has moved the log."""
        place = place_of(self.coordinator.cluster_id(deadline), name)
        token = Token(before=None if now is None else before(now), mark=mark, place=place)
        return self.log.start(self.query_id, self.session.driver, token, start_mark=mark)

    def _log_move(self, name: str, deadline: Deadline) -> None:
        """Log a move like that of a decision, and make it."""
        found = self.coordinator.describe([name], deadline)[name]
        token, mark = self._token(name, found, deadline), self.log.start_mark(self.query_id)
        if not self.log.start(self.query_id, self.session.driver, token, start_mark=mark):
            raise self.fenced()
        self.complete_move(deadline)

    def next_token(self, found: Descriptions, deadline: Deadline) -> Token:
        """The move of a decision. `found` describes the ids of `watched_ids`.

        Raises if another driver has started or decided since this one started: nothing is decided.
        """
        logged, name = self._logged_id(deadline), self.transactional_id
        where = self._position(logged, found[logged], deadline)
        if where in (Position.TAKEN_OVER, Position.AHEAD):
            raise self._overtaken(where, deadline)
        if where is Position.OUTDATED:
            raise BrokerUnreachableError(
                "the coordinator of {transactional_id} answers with a state from before this driver"
                " was started. Nothing was decided: start the query again",
                transactional_id=name,
            )
        return self._token(name, found[name], deadline)

    def is_outdated(self, found: Descriptions, deadline: Deadline) -> bool:
        """Whether the answer is that of a coordinator that was frozen and replaced."""
        name = self._logged_id(deadline)
        return self._position(name, found[name], deadline) is Position.OUTDATED

    def watched_ids(self, deadline: Deadline) -> list[str]:
        """The ids to describe before a decision."""
        return list(dict.fromkeys([self._logged_id(deadline), self.transactional_id]))

    def move_on(self, token: Token, deadline: Deadline) -> None:
        """Make the move of a decision, after the decision is logged and before the first EndTxn.

        Raises if another driver was faster: then nothing of the decision may be completed.
        """
        moved = self.coordinator.move_driver(self.transactional_id, token, deadline)
        if moved is None or not is_next(token.before, moved):
            self.complete_move(deadline)

    def complete_move(self, deadline: Deadline) -> None:
        """Make the last logged move unless it was made already. Raises as `move_on` does."""
        token = self.log.token(self.query_id)
        if token is None:  # decisions in the log of an older release move nothing
            return
        if self.is_overtaken():
            raise self.fenced()
        backoff = Backoff(deadline)
        name = self._logged_id(deadline)
        while True:
            found = self.coordinator.describe([name], deadline)[name]
            where = self._position(name, found, deadline)
            if where is Position.CURRENT:
                return
            if where in (Position.TAKEN_OVER, Position.AHEAD):
                raise self._overtaken(where, deadline)
            if where is not Position.OUTDATED:
                now = None if found is None else ProducerEpoch.of(found.identity)
                again = Token(before=now, mark=token.mark, place=token.place)
                moved = self.coordinator.move_driver(name, again, deadline)
                if moved is not None and is_next(now, moved):
                    return
            if not backoff.wait():
                raise BrokerUnreachableError(
                    "the coordinator of {transactional_id} did not say within the deadline that the"
                    " decision counts. Nothing is lost. Start the query again when the brokers"
                    " answer, and it completes the batch",
                    transactional_id=name,
                )

    def is_overtaken(self) -> bool:
        """Whether another driver was started on this log."""
        return self.log.driver(self.query_id) not in (None, self.session.driver)

    def fenced(self) -> FencedError:
        """The error for a driver that was overtaken."""
        return FencedError(
            "another driver was started for query {query_id}, from this checkpoint or from a copy"
            " of it. Only the one that was started last goes on, so this one stops. If the other"
            " was a mistake, stop it, and start this one again",
            query_id=self.query_id,
        )

    def _new_mark(self, *, decides: bool) -> int:
        limit = self.session.options.transaction_timeout_ms
        return new_mark(decides=decides, limit=limit, random=self.session.chance())

    def _token(self, name: str, found: TransactionDescription | None, deadline: Deadline) -> Token:
        """The next move, like that of a decision."""
        return Token(
            before=None if found is None else ProducerEpoch.of(found.identity),
            mark=self._new_mark(decides=True),
            place=place_of(self.coordinator.cluster_id(deadline), name),
        )

    def _position(
        self, name: str, found: TransactionDescription | None, deadline: Deadline
    ) -> Position:
        token, here = self.log.token(self.query_id), self.coordinator.cluster_id(deadline)
        if token is None:
            return unknown_position(found)
        if token.place != place_of(here, name):  # the token is from another cluster
            return Position.FORGOTTEN
        return position(token, self.log.start_mark(self.query_id), found)

    def _pending(self) -> tuple[TransactionRecord, ...]:
        """The decided transactions that may not be complete."""
        last = self.log.last_batch(self.query_id)
        if last is None or not last.decided or self.session.has_commit(last.batch_id):
            return ()
        return last.decided

    def _unfinished(self) -> tuple[TransactionRecord, ...]:
        """The transactions that tie the query to their cluster: decided ones, or those of a torn
        batch, because the rest of the batch is written there.
        """
        last = self.log.last_batch(self.query_id)
        if last is None or self.session.has_commit(last.batch_id):
            return ()
        return last.decided if last.is_whole else last.committed

    def _committed(self, deadline: Deadline) -> tuple[TransactionRecord, ...]:
        """The transactions of the last batch on this cluster, if the batch is complete."""
        last, here = self.log.last_batch(self.query_id), self.coordinator.cluster_id(deadline)
        if last is None or self._pending():
            return ()
        return tuple(r for r in last.committed if r.cluster_id == here)

    def _logged_id(self, deadline: Deadline) -> str:
        """The id whose epoch the log knows. It is another one if the prefix was changed since."""
        token, here = self.log.token(self.query_id), self.coordinator.cluster_id(deadline)
        if token is None or token.place == place_of(here, self.transactional_id):
            return self.transactional_id
        rows = self.log.rows_from(self.query_id, -1)
        parsed = (parse_transactional_id(row.identity.transactional_id) for row in rows)
        names = {driver_id(found.prefix, self.query_id) for found in parsed if found is not None}
        for name in sorted(names):
            if token.place == place_of(here, name):
                return name
        clusters = {row.cluster_id for row in rows} - {None, here}
        if any(token.place == place_of(str(c), name) for c in clusters for name in names):
            return self.transactional_id  # the query has moved to this cluster
        code = acknowledgement(Risk.OTHER_OPTIONS, self.query_id, token)
        if code == self._accepted or self.accepts(code, deadline):
            self._accepted = code
            return self.transactional_id
        raise OperatorError(
            "query {query_id} was last started with another transactionalIdPrefix than '{prefix}',"
            " or on another Kafka cluster than {cluster_id}. The transaction log at {location} has"
            " no row that says which. Start it once with the options that it had, and change them"
            " when a batch is complete. If that start was a mistake and wrote nothing, or its"
            " cluster is gone, set option {option} to '{code}' for one start with the right"
            " options",
            query_id=self.query_id,
            prefix=self.session.options.transactional_id_prefix,
            cluster_id=here,
            location=self.log.location,
            option="acknowledge",
            code=code,
        )

    def accepts(self, code: str, deadline: Deadline) -> bool:
        """Whether a person has acknowledged the code. If so, the log gets a row of it."""
        if code != self.session.options.acknowledge:
            return False
        last = self.log.last_batch_id(self.query_id)
        batch_id = NO_BATCH if last is None else last
        note = acknowledged_row(
            code,
            self.transactional_id,
            query_id=self.query_id,
            batch_id=batch_id,
            cluster_id=self.coordinator.cluster_id(deadline),
            at=self.log.next_timestamp(self.query_id),
        )
        self.log.append(self.query_id, batch_id, [note])
        _LOG.warning("query %s goes on: a person acknowledged %s", self.query_id, code)
        return True

    def _accept_or_raise(
        self, where: Position, found: TransactionDescription, deadline: Deadline
    ) -> None:
        is_ahead = where is Position.AHEAD
        risk = Risk.OLDER_LOG if is_ahead else Risk.OLDER_KAFKA
        code = acknowledgement(risk, self.query_id, self.log.token(self.query_id), found.identity)
        if not self.accepts(code, deadline):
            raise self._stale(code, deadline) if is_ahead else self._older_kafka(code, found)

    def _overtaken(self, where: Position, deadline: Deadline) -> SparkEosError:
        # The other driver uses this log if it has moved, else a copy of it.
        if where is Position.AHEAD and not self._log_has_moved():
            return self._stale(None, deadline)
        return self.fenced()

    def _log_has_moved(self) -> bool:
        seen = (self.log.driver(self.query_id), self.log.token(self.query_id))
        self.log.reopen()
        return seen != (self.log.driver(self.query_id), self.log.token(self.query_id))

    def _stale(self, code: str | None, deadline: Deadline) -> StaleLogError:
        newest = self.log.last_batch_id(self.query_id)
        instead = (
            "Start with the newest checkpoint and log of this query. If they are gone, start with a"
            " new checkpointLocation, and with startingOffsets after what was written"
            if self.session.is_streaming
            else "Set transactionLog to the newest log of this txnAppId. If it is gone, compare the"
            " topic with the source, and write what is missing under a new txnAppId"
        )
        if code is not None:
            instead += ". If the missing batches may be written a second time, set option"
            instead += f" acknowledge to '{code}' for one start"
        return StaleLogError(
            "the transaction log at {location} {has} of query {query_id}, but Kafka knows of later"
            " runs: {ids}. The log, or the checkpoint that it is in, was restored from a backup,"
            " deleted, or copied while the query went on elsewhere. Going on could write rows"
            " twice, so nothing was written. {instead}",
            location=self.log.location,
            has="has no batch" if newest in (None, NO_BATCH) else f"ends with batch {newest}",
            query_id=self.query_id,
            ids=self._ids_ahead(deadline),
            instead=instead,
        )

    def _older_kafka(self, code: str, found: TransactionDescription) -> OperatorError:
        return OperatorError(
            "the transaction log at {location} ends with batch {batch_id} of query {query_id}, but"
            " Kafka is at an earlier time: {transactional_id} is at epoch {epoch} ({state}). The"
            " cluster was restored from a backup, and committed rows may be gone from its topics."
            " Nothing was written. Compare the topics with the source, and start with a new"
            " checkpointLocation and startingOffsets at what is missing. If nothing is missing, or"
            " to go on without these rows, set option {option} to '{code}' for one start",
            location=self.log.location,
            batch_id=self.log.last_batch_id(self.query_id),
            query_id=self.query_id,
            transactional_id=found.identity.transactional_id,
            epoch=found.identity.producer_epoch,
            state=found.state.wire_name,
            option="acknowledge",
            code=code,
        )

    def _ids_ahead(self, deadline: Deadline) -> str:
        """For the error text: the ids that were used since the log was written."""
        last = self.log.last_batch(self.query_id)
        logged = {r.identity.transactional_id: r.identity for r in last.records} if last else {}
        first = self.session.transactional_id(0)
        own = self._logged_id(deadline)
        try:
            soon = deadline.at_most_s(OUTDATED_S)
            found = self.coordinator.describe(list(dict.fromkeys([own, *logged, first])), soon)
        except SparkEosError:  # the query's own id is enough for the text
            found = self.coordinator.describe([own], deadline)
        moved = [
            f"{name} is at epoch {now.identity.producer_epoch} ({now.state.wire_name})"
            + (f", the log has {logged[name].producer_epoch}" if name in logged else "")
            for name, now in found.items()
            if now is not None and now.identity != logged.get(name)
        ]
        more = f" and {len(moved) - _SHOWN_IDS} more" if len(moved) > _SHOWN_IDS else ""
        return "; ".join(moved[:_SHOWN_IDS]) + more
