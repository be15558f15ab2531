"""Which micro-batches are read: those that are asked for, or an error and never a part of them."""

import pytest

from spark_eos.errors import OptionError
from spark_eos.protocol.snapshot import BatchOutput
from spark_eos.source.snapshot import Snapshot


class Logged(Snapshot):
    """The output of a query whose log has these batches."""

    def __init__(self, *batch_ids):
        self._query_id = "q"
        self._batches = [
            BatchOutput(batch_id=i, partitions=(), pending=(), aborted=False) for i in batch_ids
        ]

    def _look(self):
        """Nothing is new in the log."""


def ids(snapshot, first, last):
    return [b.batch_id for b in snapshot.batches(first, last)]


@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [
        (None, 3, [0, 1, 3]),  # 2 wrote nothing
        (None, 0, [0]),
        (2, None, [3, 4]),
        (2, 2, []),
        (4, None, [4]),
        (0, 4, [0, 1, 3, 4]),
    ],
)
def test_batches_of_a_log_that_has_them_all(first, last, expected):
    assert ids(Logged(0, 1, 3, 4), first, last) == expected


@pytest.mark.parametrize("last", [3, 5, 7, 9])
def test_start_that_the_log_does_not_have_any_more(last):
    """They expired, or wrote nothing: the log cannot tell, so the reader has to."""
    with pytest.raises(OptionError, match=r"query q.*begins with micro-batch 5.*startingBatch"):
        ids(Logged(*range(5, 10)), None, last)


@pytest.mark.parametrize(
    ("batch_ids", "first", "last", "text"),
    [
        (range(5, 10), 3, None, "micro-batch 3 .*Complete there: 5 to 9"),
        (range(5, 10), 3, 7, "micro-batch 3 .*Complete there: 5 to 9"),
        (range(5, 10), 100, None, "micro-batch 100 .*Complete there: 5 to 9"),
        (range(5, 10), 10, None, "micro-batch 10 .*Complete there: 5 to 9"),
        (range(5, 10), 100, 100, "micro-batch 100 .*Complete there: 5 to 9"),
        (range(10), None, 10, "micro-batch 10 .*Complete there: 0 to 9"),
        ((), 0, None, "micro-batch 0 .*Complete there: none"),
        ((), None, 7, "micro-batch 0 .*Complete there: none"),
    ],
)
def test_batch_that_is_not_there(batch_ids, first, last, text):
    with pytest.raises(OptionError, match=text):
        ids(Logged(*batch_ids), first, last)
