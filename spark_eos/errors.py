"""Every error of the package, grouped by what the caller must do next.

    SparkEosError
    ├── OptionError                  fix the job: an option, a column, a topic, a cluster setting
    ├── RetriableError               try again: nothing was decided, Spark runs the batch again
    │   ├── BrokerUnreachableError       the cluster did not answer within the deadline
    │   ├── TransactionLostError         a transaction ended before it could be completed
    │   └── DeliveryError                the broker did not take a record
    ├── FencedError                  stop: another driver owns this query
    ├── OperatorError                stop and ask: a person has to decide
    │   ├── NonDeterministicReplayError  the batch that runs again is not the batch that was logged
    │   ├── DataLossError                offsets that were to be read are gone from Kafka
    │   ├── GroupInUseError              a consumer is a member of the group that a query moves
    │   ├── StaleLogError                Kafka has decisions that the transaction log does not have
    │   ├── TopicReplacedError           a topic was deleted after a batch for it was decided
    │   └── OutcomeUnknownError          nobody can tell any more what became of a transaction
    └── LogError                     stop: the transaction log is not what it should be
        ├── ForeignTableError            the path holds some other Delta table
        ├── NestedLogError               the log lies inside of another table, or contains one
        ├── LogVersionError              the log was written by a newer release
        └── CorruptLogError              an invariant of the log does not hold

A text says what happened, to which id and batch, and the next step. It never holds a secret: option
values are named only where they cannot be one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self


class SparkEosError(Exception):
    """Base of all errors that this package raises on purpose.

    An error carries what it is about as fields, and its text is made from them:

        RetriableError("batch {batch_id} failed", batch_id=7).batch_id == 7
    """

    option: str | None = None
    topic: str | None = None
    query_id: str | None = None
    batch_id: int | None = None
    transactional_id: str | None = None
    group_id: str | None = None

    def __init__(self, text: str, **fields: object) -> None:
        super().__init__(text.format_map(fields) if fields else text)
        vars(self).update(fields)

    def preceded_by(self, text: str) -> Self:
        """The same error with more text before its own."""
        found = type(self)(f"{text}{self}")
        vars(found).update(vars(self))
        return found


@dataclass(frozen=True, slots=True)
class Mistake:
    """What is wrong with one option of a job. `option` is the one to correct or to give."""

    option: str | None
    text: str


class OptionError(SparkEosError):
    """The job is wrong: an option, a column, a topic or a cluster setting. Nothing was written."""

    _mistakes: tuple[Mistake, ...] = ()

    @classmethod
    def of(cls, mistakes: Sequence[Mistake]) -> "OptionError":
        """One error for all mistakes."""
        texts = [mistake.text for mistake in mistakes]
        several = "\n  ".join([f"{len(texts)} mistakes in the options:", *texts])
        error = cls(texts[0] if len(texts) == 1 else several)
        error.option, error._mistakes = mistakes[0].option, tuple(mistakes)
        return error

    @property
    def mistakes(self) -> tuple[Mistake, ...]:
        """Everything that is wrong, one by one."""
        return self._mistakes or (Mistake(self.option, str(self)),)


class RetriableError(SparkEosError):
    """This attempt failed; nothing wrong is visible. Start the query again."""


class BrokerUnreachableError(RetriableError):
    """The cluster did not answer within the deadline."""


class TransactionLostError(RetriableError):
    """A prepared transaction ended (time-out, fencing) before it could be completed."""


class DeliveryError(RetriableError):
    """A record was not taken by the broker: its task fails."""


class FencedError(SparkEosError):
    """Another driver runs this query. This one must stop; the other goes on."""


class OperatorError(SparkEosError):
    """Going on could lose or double rows. A person has to decide; the text says between what."""


class NonDeterministicReplayError(OperatorError):
    """A batch that is partly or wholly committed came back with other rows or another input."""


class DataLossError(OperatorError):
    """Offsets that a query was to read next are not in Kafka any more."""


class GroupInUseError(OperatorError):
    """A plain consumer has joined the group whose offsets move with the batches of a query."""


class StaleLogError(OperatorError):
    """The transaction log is older than what Kafka has committed: restored, copied or lost."""


class TopicReplacedError(OperatorError):
    """A topic that a decided batch was written to was deleted, or deleted and created again."""


class OutcomeUnknownError(OperatorError):
    """The records that could tell whether a transaction was committed are gone."""


class LogError(SparkEosError):
    """The transaction log cannot be used as it is."""


class ForeignTableError(LogError):
    """The path of the transaction log holds a Delta table of another kind."""


class NestedLogError(LogError):
    """The log and another table, or a checkpoint, lie one inside of the other."""


class LogVersionError(LogError):
    """The transaction log holds records of a newer version than this release can read."""


class CorruptLogError(LogError):
    """An invariant of the transaction log does not hold."""
