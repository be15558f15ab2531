"""What is read: assign, subscribe or subscribePattern."""

import re
from collections.abc import Mapping

from spark_eos._options.offset_json import partitions
from spark_eos._protocol.offsets.subscription import Assign, Pattern, Subscribe, Subscription
from spark_eos._protocol.offsets.topic_name import RULE, is_topic_name
from spark_eos.errors import OptionError


def subscription(given: Mapping[str, str]) -> Subscription:
    """Just one of the three options."""
    names = [name for name in ("assign", "subscribe", "subscribePattern") if name.lower() in given]
    if len(names) != 1:
        found = "none is given" if not names else f"{' and '.join(names)} are given"
        raise OptionError(f"one of assign, subscribe and subscribePattern is required: {found}")
    value = given[names[0].lower()].strip()
    if names == ["assign"]:
        return Assign(partitions("assign", value))
    if names == ["subscribePattern"]:
        return _pattern(value)
    topics = tuple(sorted({topic.strip() for topic in value.split(",") if topic.strip()}))
    if not topics:
        raise OptionError(f"subscribe '{value}': no topic is given")
    for topic in topics:
        if not is_topic_name(topic):
            raise OptionError(f"subscribe '{topic}': {RULE}")
    return Subscribe(topics)


def _pattern(value: str) -> Pattern:
    try:
        re.compile(value)
    except (re.error, OverflowError, RecursionError) as error:
        raise OptionError(f"subscribePattern '{value}' is no regular expression: {error}") from None
    if not value:
        raise OptionError("option subscribePattern is empty")
    return Pattern(value)
