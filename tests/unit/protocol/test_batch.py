"""A batch as the log knows it."""

import pytest

from spark_eos.protocol.state import TransactionState as S
from tests.unit.protocol.builders import logged, record


@pytest.mark.parametrize(
    ("states", "is_aborted"),
    [
        ([S.COMPLETE_ABORT, S.COMPLETE_ABORT], True),
        ([S.COMPLETE_ABORT, S.EMPTY], True),
        ([S.COMPLETE_ABORT, S.COMPLETE_COMMIT], False),
        ([S.COMPLETE_ABORT, S.PREPARE_COMMIT], False),
        ([S.DEAD], False),
        ([S.EMPTY], False),
    ],
)
def test_batch_is_aborted_where_all_that_had_rows_was(states, is_aborted):
    rows = [record(number, state) for number, state in enumerate(states)]
    assert logged(*rows).is_aborted is is_aborted
