"""Task worker. Step 2: rows of one topic, as columns for the producer."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

Headers = list[tuple[str, bytes | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Columns of equal length. For a column that is None, Kafka's defaults hold."""

    topic: str
    keys: Sequence[bytes | None]
    values: Sequence[bytes | None]
    partitions: Sequence[int | None] | None = None
    timestamps_ms: Sequence[int | None] | None = None
    headers: Sequence[Headers | None] | None = None

    def __len__(self) -> int:
        return len(self.values)

    def message(self, row: int) -> dict[str, Any]:
        """One row as the keyword arguments of `produce`."""
        message: dict[str, Any] = {"key": self.keys[row], "value": self.values[row]}
        if self.partitions is not None and self.partitions[row] is not None:
            message["partition"] = self.partitions[row]
        if self.timestamps_ms is not None and self.timestamps_ms[row] is not None:
            message["timestamp"] = self.timestamps_ms[row]
        if self.headers is not None and self.headers[row]:
            message["headers"] = self.headers[row]
        return message

    @property
    def only_keys_and_values(self) -> bool:
        """Whether `produce_batch` can send them. It drops headers, partitions and timestamps."""
        return self.headers is None and self.partitions is None and self.timestamps_ms is None

    def messages(self) -> list[dict[str, Any]]:
        """All rows, for `produce_batch`."""
        return [
            {"key": key, "value": value} for key, value in zip(self.keys, self.values, strict=True)
        ]
