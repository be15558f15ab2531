"""Commit worker. A batch write without a transaction log: check each transaction, then commit all.

Nothing remembers that the write was decided, so the first commit request is the decision:

- Before it, any failure aborts every transaction, here. `abort` cannot do that: it runs in another
  process, gets no error, and does not know how far this one got.
- From then on nobody aborts anything. A transaction that is left open ends with its time-out. The
  error then says that a part may be visible, because running the write again would double it.
"""

import logging
from collections import Counter
from collections.abc import Mapping, Sequence

from spark_eos._deadline import Deadline
from spark_eos._failpoints import failpoint
from spark_eos._kafka.coordinator.client import EndAnswer
from spark_eos._options import WriteOptions
from spark_eos._protocol.transactions.outcome import ErrorCode, Outcome, error_name
from spark_eos._protocol.transactions.transaction import PreparedTransaction, ProducerIdentity
from spark_eos._session import Session
from spark_eos._sink.driver.decide import check
from spark_eos._sink.message import TaskMessage, running_batch, same_batch
from spark_eos.errors import OperatorError, SparkEosError, TransactionLostError

_LOG = logging.getLogger(__name__)


def commit_without_log(
    session: Session, messages: Sequence[TaskMessage], batch_id: int, deadline: Deadline
) -> None:
    """Return when every row is visible."""
    transactions = [m.result.transaction for m in messages if m.result.transaction is not None]
    if not transactions:
        return
    identities = [transaction.identity for transaction in transactions]
    try:
        recovered = same_batch(messages, batch_id)
        batch = running_batch(session, messages, batch_id, len(messages))
        check(session, batch, recovered.recovered_at, deadline)
    except BaseException as error:
        _abort(session, identities)
        if isinstance(error, SparkEosError):
            text = f"nothing of this batch write is visible, and it can be run again: {error}"
            raise type(error)(text) from error
        raise
    failpoint("decided")
    answers = session.cluster.coordinator.end(identities, committed=True, deadline=deadline)
    _raise_unless_committed(session.options, transactions, answers)
    failpoint("completed")


def _abort(session: Session, identities: Sequence[ProducerIdentity]) -> None:
    """End every transaction. Does not raise: the error that led here is the one to show."""
    # A new deadline: the one of the commit may have passed, and that may be why it failed.
    deadline = session.deadline()
    try:
        answers = session.cluster.coordinator.end(identities, committed=False, deadline=deadline)
    except Exception:
        _LOG.exception("the transactions of write %s could not be aborted", session.query_id)
        return
    unknown = sum(answer.outcome is Outcome.UNKNOWN for answer in answers.values())
    if unknown:
        _LOG.warning(
            "%d transactions of write %s may be open until their time-out",
            unknown,
            session.query_id,
        )


def _raise_unless_committed(
    options: WriteOptions,
    transactions: Sequence[PreparedTransaction],
    answers: Mapping[str, EndAnswer],
) -> None:
    """Say what is known to be committed, what is not, and what follows for whoever runs it."""
    count = Counter(answer.outcome for answer in answers.values())
    if count[Outcome.DONE] == len(transactions):
        return
    topics = ", ".join(sorted({p.topic for t in transactions for p in t.partitions}))
    timeout = f"kafka.transaction.timeout.ms is {options.transaction_timeout_ms}"
    if count[Outcome.REFUSED] == len(transactions):
        raise TransactionLostError(
            f"the batch write to {topics} is not committed: the brokers refused to commit its"
            f" {len(transactions)} transactions ({_codes(answers, Outcome.REFUSED)}), for instance"
            f" because they timed out ({timeout}). Nothing of it is visible: run the write again"
        )
    found = "; ".join(
        f"{name}: {count[outcome]}{_codes(answers, outcome, ' (%s)')}"
        for name, outcome in (
            ("known to be committed", Outcome.DONE),
            ("not known", Outcome.UNKNOWN),
            ("not committed", Outcome.REFUSED),
        )
    )
    raise OperatorError(
        f"the batch write to {topics} may be visible in part. Transactions {found}. Running the"
        " write again doubles the rows that are visible. Transactions that are still open are ended"
        f" by their time-out ({timeout}): then compare the topic with the source and write what is"
        " missing. A write with transactionLog, txnAppId and txnVersion can be run again safely"
    )


def _codes(answers: Mapping[str, EndAnswer], outcome: Outcome, form: str = "%s") -> str:
    """What the brokers said, with Kafka's names; empty where there is no such answer."""
    codes = {answer.code for answer in answers.values() if answer.outcome is outcome}
    names = sorted(error_name(code) for code in codes - {ErrorCode.NONE})
    return form % ", ".join(names) if names else ""
