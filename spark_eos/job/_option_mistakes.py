"""Driver. Every mistake in the options of a source or sink, not just the first.

The data source checks its own options and stops at the first mistake. Here it is asked again and
again, each time without the option that it named, until it has nothing more to say.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from spark_eos.errors import OptionError

_MISSING = re.compile(r"option (\S+) is missing")
_STAND_INS = {"kafka.bootstrap.servers": "localhost:9092"}


def option_mistakes(
    options: Mapping[str, str], check: Callable[[Mapping[str, str]], Any]
) -> Iterator[tuple[str | None, str]]:
    """Pairs of a given option, None where it is one that is missing, and what is wrong."""
    left, removed = dict(options), set[str]()
    while True:
        try:
            check(left)
        except OptionError as error:
            text = str(error)
        else:
            return
        if _named(text, removed) is not None:  # only a consequence of a mistake that is told
            return
        missing = _MISSING.match(text)
        if missing is not None:
            yield None, text
            left[missing[1]] = _STAND_INS.get(missing[1], "stand-in")
            continue
        name = _named(text, left)
        yield name, text
        if name is None:
            return
        del left[name]
        removed.add(name)


def _named(text: str, names: Mapping[str, str] | set[str]) -> str | None:
    """Which of the names comes first in the text: the one that it is about."""
    places = {
        name: found.start()
        for name in names
        if (found := re.search(rf"(?<![\w.]){re.escape(name)}(?![\w.])", text, re.IGNORECASE))
    }
    return min(places, key=lambda name: places[name], default=None)
