"""Driver. The text of a delta-rs error in one line: delta-rs adds arrows, colours and a stack."""

import re
from typing import Final

_COLOUR: Final = re.compile(r"\x1b\[\d*m")
_STACK: Final = re.compile(r"\n\s*0: .*", re.DOTALL)


def cause_of(error: Exception | None) -> str:
    """The text without a full stop, for use inside the text of another error."""
    lines = _STACK.sub("", _COLOUR.sub("", str(error))).splitlines()
    return ": ".join(line.strip(" ↳.") for line in lines if line.strip(" ↳."))
