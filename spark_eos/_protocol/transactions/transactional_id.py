"""Pure. Transactional ids: built from query and partition, and parsed back.

The ids are `<prefix>-<query id>-<partition>` for a task, `<prefix>-<query id>-offsets` to move a
consumer group, and `<prefix>-<query id>-driver` for the query itself (ownership.py).

Why there is at most one owner. Spark gives each checkpoint a random query id (a UUID), so two
queries share no id. Within a query, a newer attempt of a task fences the older one by its epoch.

Why parsing is unambiguous. After the last dash comes a number or a word, before it the 36
characters of the UUID, and before them the prefix, which may contain dashes. Ids are compared by
their fields, never by their beginning: `orders` must not own what belongs to `orders-eu`.
"""

import re
from dataclasses import dataclass
from typing import Final

OFFSETS: Final = "offsets"
DRIVER: Final = "driver"

_UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_ID = re.compile(
    rf"(?P<prefix>.+)-(?P<query_id>{_UUID})-(?P<last>0|[1-9][0-9]*|{OFFSETS}|{DRIVER})"
)
_QUERY_ID = re.compile(_UUID)
# Kafka allows any string. Every tool can show these characters, which are those of a topic's name.
_PREFIX = re.compile(r"[A-Za-z0-9._-]{1,128}")


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionalId:
    """The fields of a transactional id. `partition` is None if the id is not a task's."""

    prefix: str
    query_id: str
    partition: int | None
    is_driver: bool = False

    def __post_init__(self) -> None:
        if not is_prefix(self.prefix):
            raise ValueError(f"'{self.prefix}' cannot start a transactional id")
        if not _QUERY_ID.fullmatch(self.query_id):
            raise ValueError(f"'{self.query_id}' is not a query id")
        if self.partition is not None and self.partition < 0:
            raise ValueError(f"{self.partition} is not a partition number")
        if self.is_driver and self.partition is not None:
            raise ValueError("the id of a driver has no partition")

    def __str__(self) -> str:
        last = OFFSETS if self.partition is None else str(self.partition)
        return f"{self.prefix}-{self.query_id}-{DRIVER if self.is_driver else last}"


def driver_id(prefix: str, query_id: str) -> str:
    """The id of the query itself."""
    return str(TransactionalId(prefix=prefix, query_id=query_id, partition=None, is_driver=True))


def is_prefix(text: str) -> bool:
    """Whether `text` may stand before the query id."""
    return _PREFIX.fullmatch(text) is not None


def parse_transactional_id(text: str) -> TransactionalId | None:
    """The fields of `text`, or None if it is not an id of this project."""
    match = _ID.fullmatch(text)
    if match is None or not is_prefix(match["prefix"]):
        return None
    last = match["last"]
    return TransactionalId(
        prefix=match["prefix"],
        query_id=match["query_id"],
        partition=None if last in (OFFSETS, DRIVER) else int(last),
        is_driver=last == DRIVER,
    )
