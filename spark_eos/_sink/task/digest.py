"""Task worker. A digest of a partition's rows that does not depend on their order.

It answers one question: did this partition come back with the same rows? Behind a shuffle the same
rows may come in another order, so row hashes are added up (a multiset hash). It is no protection
against an adversary, only against a query that is not deterministic.
"""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from pandas.util import hash_array  # type: ignore[import-untyped]

from spark_eos._kafka.produce.rows import Rows
from spark_eos._protocol.transactions.digest import RowsDigest

# Odd and unrelated: each column counts on its own, so values that swap columns change the sum.
_WEIGHTS: Final = tuple(
    np.uint64(weight)
    for weight in (
        0x9E3779B97F4A7C15,
        0xC2B2AE3D27D4EB4F,
        0x165667B19E3779F9,
        0xD6E8FEB86659FD93,
        0xA0761D6478BD642F,
    )
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
        with np.errstate(over="ignore"):  # arithmetic modulo 2**64 is meant
            hashes = np.full(count, topic, dtype=np.uint64)
            for column, weight in zip(columns, _WEIGHTS, strict=True):
                if column is not None:
                    hashes += _hashes(column) * weight
            self._sum += _mix(hashes).sum(dtype=np.uint64)
        self.records += count

    def hexdigest(self) -> str:
        """The digest as text, with the version of this way to make it."""
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
    """The finaliser of splitmix64: without it the sum would be linear in the columns."""
    hashes = (hashes ^ (hashes >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    hashes = (hashes ^ (hashes >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return hashes ^ (hashes >> np.uint64(31))
