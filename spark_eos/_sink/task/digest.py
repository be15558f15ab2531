"""Task worker. Step 2: a digest that tells whether a partition came back with the same rows.

After a shuffle the same rows may come in another order, so the hashes of the rows are added up (a
multiset hash). The digest detects a query that is not deterministic, but not an adversary.
"""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from pandas.util import hash_array  # type: ignore[import-untyped]

from spark_eos._kafka.produce.rows import Rows
from spark_eos._protocol.transactions.digest import RowsDigest

# Odd and unrelated, so that values that swap columns change the sum.
_WEIGHTS: Final = (
    np.uint64(0x9E3779B97F4A7C15),
    np.uint64(0xC2B2AE3D27D4EB4F),
    np.uint64(0x165667B19E3779F9),
    np.uint64(0xD6E8FEB86659FD93),
    np.uint64(0xA0761D6478BD642F),
)
_ABSENT: Final = np.uint64(0x2545F4914F6CDD1D)


class RowDigest:
    """Adds up the hashes of rows, batch by batch."""

    def __init__(self) -> None:
        self.records = 0
        self._sum = np.uint64(0)

    def update(self, rows: Rows) -> None:
        """Add rows of one topic."""
        count = len(rows)
        others = (rows.partitions, rows.timestamps_ms, rows.headers)
        columns = (rows.keys, rows.values, *map(_as_bytes, others))
        topic = hash_array(np.array([rows.topic], dtype=object), categorize=False)[0]
        with np.errstate(over="ignore"):  # arithmetic modulo 2**64 is intended
            hashes = np.full(count, topic, dtype=np.uint64)
            for column, weight in zip(columns, _WEIGHTS, strict=True):
                if column is not None:
                    hashes += _hashes(column) * weight
            self._sum += _mix(hashes).sum(dtype=np.uint64)
        self.records += count

    def hexdigest(self) -> str:
        """The digest as text, with the version of its algorithm."""
        return str(RowsDigest(self.records, int(self._sum)))


def _hashes(column: Sequence[bytes | None]) -> NDArray[np.uint64]:
    values = np.empty(len(column), dtype=object)
    values[:] = column
    if None not in column:
        hashes: NDArray[np.uint64] = hash_array(values, categorize=False)
        return hashes
    absent = np.fromiter((value is None for value in column), dtype=bool, count=len(column))
    values[absent] = b""
    hashes = hash_array(values, categorize=False)
    hashes[absent] = _ABSENT
    return hashes


def _as_bytes(column: Sequence[Any] | None) -> list[bytes | None] | None:
    if column is None:
        return None
    return [None if value is None else repr(value).encode() for value in column]


def _mix(hashes: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finalizer of splitmix64. Without it the sum would be linear in the columns."""
    hashes = (hashes ^ (hashes >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    hashes = (hashes ^ (hashes >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return hashes ^ (hashes >> np.uint64(31))
