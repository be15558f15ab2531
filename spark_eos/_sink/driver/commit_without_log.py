"""Commit worker. Steps 5 and 6 of a batch write without a log: check all transactions, commit all.

The first commit request is the decision, see docs/design/batch_writes.md. Any failure before that
request aborts every transaction here, because `abort` cannot know how far `commit` got. After that
request nothing is aborted. An open transaction then ends with its time-out.
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
            text = "nothing of this batch write is visible, and it can be run again: "
            raise error.preceded_by(text) from error
        raise
    failpoint("decided")
    answers = session.cluster.coordinator.end(identities, committed=True, deadline=deadline)
    _raise_unless_committed(session.options, transactions, answers)
    failpoint("completed")


def _abort(session: Session, identities: Sequence[ProducerIdentity]) -> None:
    """Abort every transaction. Does not raise, so that the first error is shown."""
    deadline = session.deadline()  # a new one: the commit may have failed at its own deadline
    try:
        answers = session.cluster.coordinator.end(identities, committed=False, deadline=deadline)
    except Exception:
        _LOG.exception("the transactions of write %s could not be aborted", session.query_id)
        return
    unknown = sum(answer.outcome is Outcome.UNKNOWN for answer in answers.values())
    if unknown:
        text = "%d transactions of write %s may be open until their time-out"
        _LOG.warning(text, unknown, session.query_id)


def _raise_unless_committed(
    options: WriteOptions,
    transactions: Sequence[PreparedTransaction],
    answers: Mapping[str, EndAnswer],
) -> None:
    count = Counter(answer.outcome for answer in answers.values())
    if count[Outcome.DONE] == len(transactions):
        return
    fields = {
        "topics": ", ".join(sorted({p.topic for t in transactions for p in t.partitions})),
        "timeout": f"kafka.transaction.timeout.ms is {options.transaction_timeout_ms}",
    }
    if count[Outcome.REFUSED] == len(transactions):
        raise TransactionLostError(
            "the batch write to {topics} is not committed: the brokers refused to commit its"
            " {count} transactions ({codes}). They may have timed out ({timeout}). Nothing of it is"
            " visible: run the write again",
            count=len(transactions),
            codes=_codes(answers, Outcome.REFUSED),
            **fields,
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
        "the batch write to {topics} may be visible in part. Transactions {found}. Running the"
        " write again doubles the rows that are visible. Transactions that are still open are ended"
        " by their time-out ({timeout}). Then compare the topic with the source and write what is"
        " missing. A write with transactionLog, txnAppId and txnVersion can be run again safely",
        found=found,
        **fields,
    )


def _codes(answers: Mapping[str, EndAnswer], outcome: Outcome, form: str = "%s") -> str:
    codes = {answer.code for answer in answers.values() if answer.outcome is outcome}
    names = sorted(error_name(code) for code in codes - {ErrorCode.NONE})
    return form % ", ".join(names) if names else ""
