"""Pure. What a read sees of transactions."""

from enum import Enum


class IsolationLevel(Enum):
    """Kafka's two levels, and one that reads whole micro-batches of a query of this project."""

    READ_COMMITTED = "read_committed"
    READ_UNCOMMITTED = "read_uncommitted"
    SNAPSHOT = "snapshot"

    def __str__(self) -> str:
        return self.value

    @property
    def in_kafka(self) -> "IsolationLevel":
        """The level at which brokers are asked."""
        return IsolationLevel.READ_COMMITTED if self is IsolationLevel.SNAPSHOT else self
