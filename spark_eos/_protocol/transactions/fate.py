"""What became of a decided transaction, as far as the coordinator and the data can tell."""

from enum import Enum


class Fate(Enum):
    """The answer of the data to the question whether a transaction was committed."""

    COMMITTED = "committed"
    ABORTED = "aborted"
    OPEN = "open"  # not ended, or behind an open transaction of another: ask again later
    GONE = "gone"  # its records were deleted or compacted away: nobody can tell any more
