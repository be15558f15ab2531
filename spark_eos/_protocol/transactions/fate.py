"""Pure. What became of a decided transaction, according to the coordinator and the data."""

from enum import Enum


class Fate(Enum):
    """Whether a transaction was committed."""

    COMMITTED = "committed"
    ABORTED = "aborted"
    OPEN = "open"  # not ended, or hidden by another open transaction: ask again later
    GONE = "gone"  # its records were deleted or compacted away: nobody can tell
