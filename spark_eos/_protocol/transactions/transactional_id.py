"""Transactional ids: built from query and partition, parsed back into fields.

`<prefix>-<query id>-<partition>` for a task, `<prefix>-<query id>-offsets` for the transaction that
moves a consumer group, and `<prefix>-<query id>-driver` for the query itself (ownership.py).

Why there is at most one owner. Spark gives every checkpoint a random query id (a UUID), so two
queries never share an id, whatever their prefixes; within a query a partition number is written by
one task attempt at a time, and a newer attempt fences the older one by its epoch. Why parsing is
unambiguous: the part after the last dash is a number or a word, the 36 characters before it are
the UUID, and the rest is the prefix, which may hold dashes of its own. Ids are compared field by
field and never by how they begin: `orders` must not own what belongs to `orders-eu`.
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
# Kafka takes any string; these are the characters of a topic's name, which every tool can show.
_PREFIX = re.compile(r"[A-Za-z0-9._-]{1,128}")


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionalId:
    """One transactional id, in its fields. `partition` is None for those that are no task's."""

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
    """The fields of `text`, or None where it is not an id of this project."""
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
