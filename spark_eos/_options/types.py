"""Every process. Parsers of one option's text. A ValueError says what is accepted."""

import re
from collections.abc import Callable
from typing import Final

from spark_eos._protocol.offsets.topic_name import RULE, is_topic_name
from spark_eos._protocol.transactions.transactional_id import is_prefix

INT: Final = 2**31 - 1
LONG: Final = 2**63 - 1

_WHOLE = re.compile(r"-?[0-9]{1,19}")
_DURATION = re.compile(r"\s*([0-9]{1,15})\s*([a-z]*)\s*", re.IGNORECASE)
_UNITS: Final = {
    "": 1,
    "ms": 1,
    "s": 1000,
    "m": 60_000,
    "min": 60_000,
    "h": 3_600_000,
    "d": 86_400_000,
}


def not_blank(value: str) -> str:
    """Any text that is not blank."""
    if not value.strip():
        raise ValueError
    return value


def boolean(value: str) -> bool:
    """True or false, in any case."""
    if value.lower() not in ("true", "false"):
        raise ValueError("true or false is accepted")
    return value.lower() == "true"


def choice(*words: str) -> Callable[[str], str]:
    """One of some words, in any case."""

    def parse(value: str) -> str:
        word = value.strip().lower()
        if word not in words:
            raise ValueError(f"accepted values are {', '.join(words)}")
        return word

    return parse


def whole(unit: str, *, least: int = 1, most: int = INT) -> Callable[[str], int]:
    """A whole number of `unit`."""

    def parse(value: str) -> int:
        parsed = int(value) if _WHOLE.fullmatch(value) else least - 1
        if not least <= parsed <= most:
            raise ValueError(f"{least} to {most} {unit} are accepted")
        return parsed

    return parse


def duration_ms(value: str) -> int:
    """A time as Spark writes it: 15m, 30s, 500ms. A number without a unit is in milliseconds."""
    match = _DURATION.fullmatch(value)
    if match is None or match[2].lower() not in _UNITS:
        raise ValueError("give a time such as 15m, 30s or 500ms")
    return int(match[1]) * _UNITS[match[2].lower()]


def topic(value: str) -> str:
    """The name of a topic."""
    if not is_topic_name(value):
        raise ValueError(RULE)
    return value


def prefix(value: str) -> str:
    """The part of a transactional id before the query id."""
    if not is_prefix(value):
        raise ValueError("1 to 128 letters, digits, '.', '_' or '-' are accepted")
    return value
