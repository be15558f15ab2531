"""What a task does with its rows, and when a batch that ran again is the batch that was logged."""

import pytest

from spark_eos._protocol.transactions.batch import Action, RecoveredQuery
from spark_eos._protocol.transactions.replay import check_same_batch, check_same_partitions
from spark_eos._protocol.transactions.state import TransactionState
from spark_eos.errors import NonDeterministicReplayError
from tests.unit.protocol.builders import QUERY, logged, record, result

S = TransactionState


def tail(**values):
    return RecoveredQuery(query_id=QUERY, **values)


def torn(**values):
    return tail(**{"complete": False, "rows_complete": False} | values)


@pytest.mark.parametrize(
    ("seen", "batch_id", "partition", "action"),
    [
        (tail(), 0, 0, Action.WRITE),
        (tail(last_batch_id=7), 8, 0, Action.WRITE),
        (tail(last_batch_id=7), 7, 0, Action.SKIP),
        (tail(last_batch_id=7), 6, 0, Action.SKIP),
        (torn(last_batch_id=7), 8, 0, Action.WRITE),
        (torn(last_batch_id=7), 7, 0, Action.WRITE),
        (torn(last_batch_id=7), 6, 0, Action.SKIP),
        (torn(last_batch_id=7, committed_partitions={1}), 7, 1, Action.SKIP),
        (torn(last_batch_id=7, committed_partitions={1}), 7, 2, Action.WRITE),
        (torn(last_batch_id=7, committed_partitions={1}, rows_complete=True), 8, 2, Action.WRITE),
        (torn(last_batch_id=7, committed_partitions={1}, rows_complete=True), 7, 2, Action.SKIP),
    ],
)
def test_action(seen, batch_id, partition, action):
    assert seen.action(batch_id, partition) is action


def same_batch(found, *results, input_digest="input-7", older_input_digest="older-7"):
    check_same_batch(
        found,
        query_id=QUERY,
        batch_id=7,
        input_digest=input_digest,
        older_input_digest=older_input_digest,
        results=results,
    )


def test_committed_batch_with_the_same_input_is_the_same():
    same_batch(logged(record(0), record(1, S.COMPLETE_COMMIT)), result(0), result(1))


@pytest.mark.parametrize("state", [S.PREPARE_COMMIT, S.COMPLETE_COMMIT])
def test_committed_batch_with_another_input_is_refused(state):
    with pytest.raises(NonDeterministicReplayError, match="another range of source offsets"):
        same_batch(logged(record(0, state)), result(0), input_digest="other")


@pytest.mark.parametrize("version", [1, 2])
def test_input_of_an_older_row_is_compared_as_that_release_had_it(version):
    found = logged(record(0, version=version, input_digest="older-7"))
    same_batch(found, result(0))
    with pytest.raises(NonDeterministicReplayError):
        same_batch(found, result(0), older_input_digest="other", input_digest="older-7")


def test_batch_that_the_log_does_not_know_may_only_be_empty():
    same_batch(None, result(0, rows=0))
    with pytest.raises(NonDeterministicReplayError, match="no record"):
        same_batch(None, result(0, rows=0), result(1, rows=1))


TORN = logged(
    record(0, S.COMPLETE_COMMIT), record(1, S.COMPLETE_ABORT), record(3, S.PREPARE_COMMIT)
)


def four(**digests):
    return [result(i, digest=digests.get(f"d{i}")) for i in range(4)]


def test_torn_batch_with_the_same_committed_rows_may_be_mended():
    check_same_partitions(TORN, four(d1="anything"))


@pytest.mark.parametrize("changed", ["d0", "d3"])
def test_torn_batch_with_other_rows_in_a_committed_partition_is_refused(changed):
    with pytest.raises(NonDeterministicReplayError, match="other rows in partition"):
        check_same_partitions(TORN, four(**{changed: "other"}))


def test_torn_batch_with_another_number_of_partitions_is_refused():
    with pytest.raises(NonDeterministicReplayError, match="in 5"):
        check_same_partitions(TORN, [*four(), result(4)])
