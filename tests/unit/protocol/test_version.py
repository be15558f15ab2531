"""A version that runs again is skipped only where it has the rows that were written."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_eos._protocol.transactions.digest import RowsDigest
from spark_eos._protocol.transactions.state import TransactionState
from spark_eos._protocol.transactions.version import check_same_rows
from spark_eos.errors import (
    CorruptLogError,
    LogVersionError,
    NonDeterministicReplayError,
    OperatorError,
)
from tests.unit.protocol.builders import QUERY, logged, record, result

S = TransactionState
VERSION = 7


def digest(*rows):
    return str(RowsDigest(len(rows), sum(rows) % 2**64))


def partition(number, *rows, state=S.COMPLETE_COMMIT, of=4):
    return record(number, state, digest=digest(*rows), sink_partitions=of)


def check(found, *results, last_version=VERSION):
    check_same_rows(
        found,
        [result(n, rows=None, digest=text, transaction=False) for n, text in enumerate(results)],
        application="nightly",
        query_id=QUERY,
        version=VERSION,
        last_version=last_version,
    )


TWO = logged(partition(0, 1, 2), partition(3, 5))


@pytest.mark.parametrize("last_version", [VERSION, VERSION + 3])
@pytest.mark.parametrize(
    "results",
    [
        (digest(1, 2), digest(), digest(), digest(5)),
        (digest(5), digest(1, 2)),
        (digest(1, 5, 2),),
        (digest(), digest(2), digest(1), digest(), digest(5), digest()),
    ],
    ids=["the same partitions", "swapped", "one", "more"],
)
def test_same_rows_in_any_layout_are_the_same_version(results, last_version):
    check(TWO, *results, last_version=last_version)


@given(
    st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=8),
    st.lists(st.integers(0, 3), min_size=8, max_size=8),
    st.lists(st.integers(0, 3), min_size=8, max_size=8),
)
def test_any_two_layouts_of_the_same_rows_are_the_same_version(rows, before, after):
    layouts = [[[], [], [], []], [[], [], [], []]]
    for layout, places in zip(layouts, (before, after), strict=True):
        for row, place in zip(rows, places, strict=False):
            layout[place].append(row)
    written = [partition(n, *part) for n, part in enumerate(layouts[0]) if part]
    check(logged(*written), *(digest(*part) for part in layouts[1]))


@pytest.mark.parametrize("last_version", [VERSION, VERSION + 3])
@pytest.mark.parametrize(
    ("results", "count"),
    [
        ((digest(1, 2), digest(6)), 3),
        ((digest(1, 2, 5), digest(0)), 4),
        ((digest(1, 2),), 2),
        ((digest(),), 0),
        ((digest(1, 2, 5, 9),), 4),
    ],
    ids=["another value", "a row that hashes to 0", "one less", "none", "one more"],
)
def test_other_rows_are_refused(results, count, last_version):
    with pytest.raises(NonDeterministicReplayError) as caught:
        check(TWO, *results, last_version=last_version)
    text = str(caught.value)
    assert f"version 7 of txnAppId 'nightly' (query {QUERY})" in text
    assert f"(in the log: 3, now: {count}). Nothing was written now." in text
    assert f"as version {last_version + 1}, " in text
    assert "spark_eos.txn_options" in text


@pytest.mark.parametrize("state", [S.PREPARE_COMMIT, S.COMPLETE_COMMIT, S.DEAD])
def test_rows_that_are_visible_count(state):
    found = logged(partition(0, 1, state=state))
    check(found, digest(1))
    with pytest.raises(NonDeterministicReplayError):
        check(found, digest(2))


def test_id_that_lost_its_rows_and_got_none_again_counts_for_nothing():
    """Its row keeps the digest of what was lost, also as a tombstone."""
    for state in (S.EMPTY, S.DEAD):
        emptied = replace(partition(1, 2, state=state), partitions=())
        check(logged(partition(0, 1), emptied), digest(1))
        check(logged(emptied), digest())


def test_version_that_expired_is_skipped_only_without_rows():
    check(None, digest(), digest())
    with pytest.raises(OperatorError) as caught:
        check(None, digest(), digest(4, 4))
    assert not isinstance(caught.value, NonDeterministicReplayError)
    text = str(caught.value)
    assert f"version 7 of txnAppId 'nightly' (query {QUERY})" in text
    assert "the rows of this run (2) cannot be compared" in text
    assert "Nothing was written now" in text
    assert "write them as version 8" in text


def test_tombstones_of_the_last_version_are_all_there():
    """Partitions without rows have none."""
    found = logged(partition(1, 1, 2, state=S.DEAD), partition(3, 3, state=S.DEAD))
    check(found, digest(1, 2, 3))
    with pytest.raises(NonDeterministicReplayError):
        check(found, digest(1, 2))


def test_tombstones_of_an_older_version_are_compared_only_if_none_can_be_missing():
    """A later version that used an id has taken its tombstone."""
    rest = [partition(n, n, state=S.DEAD, of=3) for n in (1, 2)]
    for results in ((digest(1, 2),), (digest(1, 2, 9),)):
        with pytest.raises(OperatorError, match="cannot be compared"):
            check(logged(*rest), *results, last_version=8)
    whole = logged(partition(0, 9, state=S.DEAD, of=3), *rest)
    check(whole, digest(1, 2, 9), last_version=8)
    with pytest.raises(NonDeterministicReplayError):
        check(whole, digest(1, 2), last_version=8)


@pytest.mark.parametrize(
    ("text", "error"), [("2:1:0000000000000001", LogVersionError), ("x", CorruptLogError)]
)
def test_digest_that_cannot_be_compared_is_refused_with_its_place(text, error):
    with pytest.raises(error, match="version 7 of txnAppId 'nightly'"):
        check(logged(record(0, digest=text)), digest(1))
