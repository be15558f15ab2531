"""Pure. The digest of rows, as the log stores it.

It is a multiset hash: `<version>:<records>:<sum of row hashes modulo 2**64>`. Sums add up, so the
digest of a whole write does not depend on how its rows were spread over partitions.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from spark_eos.errors import CorruptLogError, LogVersionError

VERSION: Final = 1
_MODULUS: Final = 2**64
_STORED: Final = re.compile(r"[0-9]+:([0-9]+):([0-9a-f]{16})")


@dataclass(frozen=True, slots=True)
class RowsDigest:
    """The number of rows, and the sum of their hashes."""

    records: int = 0
    hash_sum: int = 0

    def __add__(self, other: "RowsDigest") -> "RowsDigest":
        return RowsDigest(self.records + other.records, (self.hash_sum + other.hash_sum) % _MODULUS)

    def __str__(self) -> str:
        """The stored form."""
        return f"{VERSION}:{self.records}:{self.hash_sum:016x}"


def parse_digest(text: str) -> RowsDigest:
    """The digest that `text` stores. Raises if this release cannot compare it."""
    version = text.partition(":")[0]
    if version.isdecimal() and int(version) != VERSION:
        raise LogVersionError(
            "the digest '{digest}' has version {version}, but this release compares version"
            " {supported}. Upgrade spark-eos wherever this log is used",
            digest=text,
            version=version,
            supported=VERSION,
        )
    stored = _STORED.fullmatch(text)
    if stored is None:
        raise CorruptLogError("'{digest}' is not the digest of rows", digest=text)
    return RowsDigest(int(stored[1]), int(stored[2], 16))


def total_digest(texts: Iterable[str]) -> RowsDigest:
    """The digest of all rows of several partitions."""
    return sum(map(parse_digest, texts), RowsDigest())
