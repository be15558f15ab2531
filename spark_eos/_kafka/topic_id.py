"""Pure. The id of a topic (KIP-516), as `kafka-topics.sh` prints it."""

import base64
import uuid
from typing import Any, Final

_NO_ID: Final = bytes(16)


def topic_id_text(found: Any) -> str | None:
    """The text of a `uuid.UUID` (kafka-python) or a `Uuid` (confluent). None: there is no id."""
    if isinstance(found, uuid.UUID):
        raw = found.bytes
    else:
        halves = (found.get_most_significant_bits(), found.get_least_significant_bits())
        raw = b"".join(half.to_bytes(8, "big", signed=True) for half in halves)
    return None if raw == _NO_ID else base64.urlsafe_b64encode(raw).decode().rstrip("=")
