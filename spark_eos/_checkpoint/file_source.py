"""Planner and commit worker. Which files a batch of Spark's file source has read.

An offset of this source is a number. The checkpoint has the files of each number under
`sources/<source>/<number>` (docs/design/recovery.md). Every tenth file, `<number>.compact`, also
has all entries before it. Spark removes the older files some minutes later.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Final

_COMPACTED: Final = ".compact"


def log_offset(offset: str) -> int | None:
    """The number in an offset of a file source; None for a source of another kind."""
    try:
        found = json.loads(offset)
    except ValueError:
        return None
    is_number = isinstance(found, dict) and found.keys() == {"logOffset"}
    return int(found["logOffset"]) if is_number else None


def files_between(
    start: int, end: int, *, names: Sequence[str], read: Callable[[str], str | None]
) -> list[str]:
    """Path and time of each input after `start` and up to `end`, from the files that are left."""
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
    """The name of the file that has the entries of this number."""
    if str(number) in names:
        return str(number)
    numbers = (name.removesuffix(_COMPACTED) for name in names if name.endswith(_COMPACTED))
    compacted = [int(n) for n in numbers if n.isdigit() and int(n) >= number]
    return f"{min(compacted)}{_COMPACTED}" if compacted else None


def _entries(text: str) -> Iterator[dict[str, object]]:
    """The entries after the first line, which is the version of the format."""
    return (json.loads(line) for line in text.split("\n")[1:] if line)
