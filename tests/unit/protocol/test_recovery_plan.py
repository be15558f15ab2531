"""Every cell of the recovery table: each mix of fates and of logged states, up to four ids."""

import itertools
from dataclasses import replace

import pytest

from spark_eos._protocol.transactions.fate import Fate
from spark_eos._protocol.transactions.recovery_plan import Verdict, plan_recovery
from spark_eos._protocol.transactions.state import TransactionState
from tests.unit.protocol.builders import at, logged, record

S = TransactionState
# What the log says of one id, with the answer that the survey gave where it is pending.
CELLS = {
    "pending, committed": (S.PREPARE_COMMIT, Fate.COMMITTED),
    "pending, aborted": (S.PREPARE_COMMIT, Fate.ABORTED),
    "pending, open": (S.PREPARE_COMMIT, Fate.OPEN),
    "pending, gone": (S.PREPARE_COMMIT, Fate.GONE),
    "complete commit": (S.COMPLETE_COMMIT, None),
    "complete abort": (S.COMPLETE_ABORT, None),
    "empty": (S.EMPTY, None),
}
COMMITTED = {"pending, committed", "complete commit"}
LOST = {"pending, aborted", "complete abort"}


def expected(kinds):
    if "pending, open" in kinds:
        return Verdict.STILL_OPEN
    if "pending, gone" in kinds:
        return Verdict.CANNOT_TELL
    if not LOST & kinds:
        return Verdict.ALL_COMMITTED
    return Verdict.SOME_COMMITTED if COMMITTED & kinds else Verdict.NONE_COMMITTED


def judge(kinds, *, last_is_offsets=False):
    records = [record(i, CELLS[kind][0]) for i, kind in enumerate(kinds)]
    if last_is_offsets:
        records[-1] = replace(records[-1], sink_partition=None)
    fates = {
        r.identity.transactional_id: CELLS[kind][1]
        for r, kind in zip(records, kinds, strict=True)
        if CELLS[kind][1] is not None
    }
    return records, plan_recovery(logged(*records), fates)


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_verdict_of_every_mix(size):
    for kinds in itertools.product(CELLS, repeat=size):
        records, plan = judge(kinds)
        assert plan.verdict is expected(set(kinds)), kinds
        for group, kind_set in ((plan.committed, COMMITTED), (plan.lost, LOST)):
            assert list(group) == [
                r for r, kind in zip(records, kinds, strict=True) if kind in kind_set
            ], kinds


@pytest.mark.parametrize("size", [1, 2, 3])
def test_rows_are_complete_where_some_are_committed_and_none_is_lost(size):
    """Where at most the move of the group is lost, a batch need not come back with the same rows.
    One without rows is not complete with them lost: it runs again as a whole.
    """
    known = COMMITTED | LOST | {"empty"}
    for *rows, offsets in itertools.product(known, repeat=size + 1):
        _, plan = judge([*rows, offsets], last_is_offsets=True)
        complete = bool(COMMITTED & set(rows)) and not LOST & set(rows)
        all_committed = plan.verdict is Verdict.ALL_COMMITTED
        assert plan.rows_complete is (complete or all_committed), (rows, offsets)
        assert plan.committed_partitions == {i for i, r in enumerate(rows) if r in COMMITTED}


def test_rows_of_a_torn_batch_end_each_pending_transaction_and_no_other():
    records, plan = judge(
        ["pending, committed", "pending, aborted", "complete commit", "complete abort"]
    )
    rows = plan.rows(at(9))
    assert [(r.sink_partition, r.state) for r in rows] == [
        (0, S.COMPLETE_COMMIT),
        (1, S.COMPLETE_ABORT),
    ]
    assert {r.entry_timestamp for r in rows} == {at(9)}
    assert rows[0].identity == records[0].identity


@pytest.mark.parametrize(
    "kinds", [["pending, committed"], ["pending, open"], ["pending, gone", "pending, aborted"]]
)
def test_nothing_is_logged_where_all_is_committed_or_it_is_not_known(kinds):
    _, plan = judge(kinds)
    assert plan.rows(at(9)) == ()


def test_pending_transaction_without_an_answer_is_an_error():
    with pytest.raises(KeyError):
        plan_recovery(logged(record(0)), {})
