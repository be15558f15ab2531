"""Every process. The id of a topic as Kafka's own tools print it.

A topic that is deleted and created again has the same name and another id (KIP-516). The two client
libraries give it in two types; both are turned into the text that `kafka-topics.sh` shows.
"""

import base64
import uuid
from typing import Any, Final

_NO_ID: Final = bytes(16)


def topic_id_text(found: Any) -> str | None:
    """Of a `uuid.UUID` (kafka-python) or a `Uuid` (confluent); None where there is no id."""
    if isinstance(found, uuid.UUID):
        raw = found.bytes
    else:
        halves = (found.get_most_significant_bits(), found.get_least_significant_bits())
        raw = b"".join(half.to_bytes(8, "big", signed=True) for half in halves)
    return None if raw == _NO_ID else base64.urlsafe_b64encode(raw).decode().rstrip("=")
