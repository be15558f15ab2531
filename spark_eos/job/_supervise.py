"""Driver. The supervised run: retry, or stop for good if a person must act.

A restart is always safe, because recovery completes or aborts what the failed run left. So every
failure that needs no person is retried, with growing pauses, up to a limit of failures in a row.
"""

import logging
import re
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Final

from py4j.protocol import Py4JNetworkError

from spark_eos import errors
from spark_eos.job._stop import Stop
from spark_eos.job.sections import Restart

_LOG = logging.getLogger(__name__)

# Python's traceback starts the line of an error with its qualified name. The same class name of
# another module, or within another text, must not match.
_RAISED = re.compile(r"^([A-Za-z_]\w*(?:\.\w+)+)(?=:|$)", re.MULTILINE)
# An error about several options has a line for each, indented by two spaces.
_OWN = re.compile(r"^spark_eos\.errors\.(\w+: .*(?:\n  (?!File )\S.*)*)$", re.MULTILINE)


class Exit(int, Enum):
    """The exit codes of a job."""

    DONE = 0
    GAVE_UP = 1
    WRONG_CONFIGURATION = 2
    NEEDS_A_PERSON = 4


# A retry cannot repair these. The job ends with the exit code.
_FOR_GOOD: Final = {
    errors.FencedError: Exit.NEEDS_A_PERSON,
    errors.OperatorError: Exit.NEEDS_A_PERSON,
    errors.LogError: Exit.NEEDS_A_PERSON,
    errors.OptionError: Exit.WRONG_CONFIGURATION,
}


@dataclass(frozen=True, slots=True)
class RunResult:
    """How one run of a job ended."""

    error: Exception | None
    progressed: bool


def verdict(error: Exception) -> Exit | None:
    """The exit code of a job that must end, or None if a retry may help.

    An error of a Python worker reaches the driver as a text with the names of all raised errors.
    A lost JVM does not come back, so only a new start of the job helps.
    """
    if isinstance(error, ConnectionError | Py4JNetworkError):
        return Exit.GAVE_UP
    names = set(_RAISED.findall("".join(traceback.format_exception(error))))
    for kind, exit_code in _FOR_GOOD.items():
        if names & {f"{found.__module__}.{found.__qualname__}" for found in _family(kind)}:
            return exit_code
    return None


def supervise(attempt: Callable[[], RunResult], restart: Restart, stop: Stop) -> Exit:
    """Run until an attempt succeeds, the job is stopped, or a retry makes no sense."""
    failures = 0
    while True:
        ended = attempt()
        if ended.error is None:
            return Exit.DONE
        if stop.is_requested:
            _LOG.warning("stopped after: %s", reason(ended.error))
            return Exit.DONE
        if (exit_code := verdict(ended.error)) is not None:
            _LOG.error("stopped for good: %s", reason(ended.error))
            return exit_code
        failures = 1 if ended.progressed else failures + 1
        if failures > restart.limit:
            _LOG.error("gave up after %d failures in a row: %s", failures, reason(ended.error))
            return Exit.GAVE_UP
        pause_s = min(restart.longest_pause_s, restart.first_pause_s * 2 ** (failures - 1))
        _LOG.warning("retry %d in %.1f s after: %s", failures, pause_s, reason(ended.error))
        if stop.wait(pause_s):
            return Exit.DONE


def reason(error: Exception) -> str:
    """The line that says what happened: this package's own if there is one, else the first."""
    text = str(error)
    if isinstance(error, errors.SparkEosError):
        return text
    own = _OWN.findall(text)
    first = next((line for line in text.splitlines() if line.strip()), "")
    return own[-1] if own else f"{type(error).__name__}: {first}"


def _family(kind: type[Exception]) -> set[type[Exception]]:
    return {kind}.union(*(_family(child) for child in kind.__subclasses__()))
