"""Pure. The names that Kafka allows for a topic."""

import re
from typing import Final

RULE: Final = "a topic's name has 1 to 249 letters, digits, '.', '_' or '-'"

_NAME = re.compile(r"[A-Za-z0-9._-]{1,249}")


def is_topic_name(name: str) -> bool:
    """Whether a topic can have this name."""
    return _NAME.fullmatch(name) is not None and name not in (".", "..")
