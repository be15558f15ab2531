"""Driver: what delta-rs says, on one line. It writes several: arrows, colours, a stack."""

import re
from typing import Final

_COLOUR: Final = re.compile(r"\x1b\[\d*m")
_STACK: Final = re.compile(r"\n\s*0: .*", re.DOTALL)


def cause_of(error: Exception | None) -> str:
    """For the text of an error of this project, without a full stop."""
    lines = _STACK.sub("", _COLOUR.sub("", str(error))).splitlines()
    return ": ".join(line.strip(" ↳.") for line in lines if line.strip(" ↳."))
