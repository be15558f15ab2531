"""Planner and commit worker. Which files a batch of Spark's file source is made of.

An offset of that source is a number and no place: the files behind it are in the checkpoint, under
`sources/<source>/<number>`. A checkpoint that was restored from a backup gives its next numbers to
whatever it finds then. So the number alone does not say what a batch has read.

Every tenth file of that folder is `<number>.compact` and holds all entries before it, too; Spark
removes the older ones some minutes later.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Final

_COMPACTED: Final = ".compact"


def log_offset(offset: str) -> int | None:
    """The number, where this is an offset of a file source."""
    try:
        found = json.loads(offset)
    except ValueError:
        return None
    is_number = isinstance(found, dict) and found.keys() == {"logOffset"}
    return int(found["logOffset"]) if is_number else None


def files_between(
    start: int, end: int, *, names: Sequence[str], read: Callable[[str], str | None]
) -> list[str]:
    """What was read behind `start` and up to `end`: path and time of each file, in one order.

    `names` are those of the files in the source's folder. What is not there any more is left out.
    """
    wanted = range(start + 1, end + 1)
    holders = {_holder(number, names) for number in wanted} - {None}
    found = {
        (entry["path"], entry["timestamp"])
        for name in holders
        for entry in _entries(read(str(name)) or "")
        if entry["batchId"] in wanted
    }
    return [f"{path} {timestamp}" for path, timestamp in sorted(found)]


def _holder(number: int, names: Sequence[str]) -> str | None:
    """The file that has the entries of this number."""
    if str(number) in names:
        return str(number)
    numbers = (name.removesuffix(_COMPACTED) for name in names if name.endswith(_COMPACTED))
    compacted = [int(n) for n in numbers if n.isdigit() and int(n) >= number]
    return f"{min(compacted)}{_COMPACTED}" if compacted else None


def _entries(text: str) -> Iterator[dict[str, object]]:
    """The first line is the version of the format."""
    return (json.loads(line) for line in text.split("\n")[1:] if line)
