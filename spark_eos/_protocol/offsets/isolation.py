"""Pure. Isolation levels: what a read sees of transactions."""

from enum import Enum


class IsolationLevel(Enum):
    """Kafka's two levels, and one that reads a query of this project in whole micro-batches."""

    READ_COMMITTED = "read_committed"
    READ_UNCOMMITTED = "read_uncommitted"
    SNAPSHOT = "snapshot"

    def __str__(self) -> str:
        return self.value

    @property
    def in_kafka(self) -> "IsolationLevel":
        """The level of the requests to brokers."""
        return IsolationLevel.READ_COMMITTED if self is IsolationLevel.SNAPSHOT else self
