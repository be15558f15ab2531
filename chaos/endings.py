"""How a driver of the bench may end, told by its last words and by what was done to it. Pure.

The input can always be read again, the same, so no error that asks for a person may come. No error
comes of itself either: a driver fails after a fault. Which faults can bring about which words, and
for how long behind them, is in `CAUSES`; every word that a driver said must have its fault.
"""

import re
import signal
from dataclasses import dataclass

ZOMBIE = "zombie-driver"
# A person puts the query's state back, or copies it.
_PEOPLE = "restored-backup|copied-checkpoint"
# What faults do, by their names.
# The query gets no answer, a late one, or one of a broker that has just taken over.
_CLUSTER = "broker-.+|coordinator-.+|leader-move|net-.+|torn-by-time-out"
# A process stands still, and deadlines and time-outs do not. A clock that jumps stops who waits on
# it.
_FROZEN = f"{ZOMBIE}|driver-pause|executor-pause|worker-pause|time-out-frozen|clock-jump"
# A task runs again, and the transactions of the others wait for it and grow old.
_SLOWED = "executor-kill|worker-kill|worker-kill-at"
# Somebody who was given up goes on beside who came instead: a driver that was frozen; the Python
# workers of a driver whose program and JVM alone were killed or have ended (a clock that is wrong
# begins and ends with a kill); the workers of an executor that was killed, or that the driver gave
# up because one of the two stood still. Not where all of a host is killed, or nobody comes until
# every deadline is over.
_TWO = (
    f"{ZOMBIE}|driver-kill|driver-kill-at|driver-stop|driver-pause|clock-skew"
    "|executor-kill|executor-pause|copied-checkpoint"
)
_DISK = "log-failure|power-cut"
# What belongs to a driver that goes on is gone, or stood still while it started.
_PROCESSES = f"{ZOMBIE}|driver-pause|driver-stop|executor-.+|worker-.+"

# A request may be lost at the fault's last moment, or a worker be given up. Then somebody waits for
# as long as apiTimeoutMs: 60 s in the source, 20 s in the sink, where a step of a driver comes
# behind a step of a worker that lives on. 10 s more end the batch, and the driver.
WAITED_S = 70.0
# It shows at once: Spark asks each process every few seconds, and gives one up after 10. A batch
# that fails is ended within the sink's 20 s.
AT_ONCE_S = 30.0
# When a clock that was ahead is set right it goes back, by up to 30 s, and who waits on it waits
# for so long.
CLOCK_S = 30.0 + AT_ONCE_S

_CONNECTION_LOST = r"(EOFException|Broken pipe|Connection reset).*(\n\s+at .*)*"
GONE = re.compile(
    "|".join(
        (
            # A Python worker was killed at work, or killed or frozen while it started.
            "Python worker exited unexpectedly",
            "Python worker failed to connect back",
            "Python daemon failed to launch worker",
            "EOFException occurred while reading the port number",
            # The same where Spark has no words for it: the source's own worker, one that starts.
            rf"{_CONNECTION_LOST}\.PythonStreamingSourceRunner\b",
            rf"{_CONNECTION_LOST}\.PythonWorkerFactory\b",
            # Executors were killed, or frozen until they were given up, with a task or its data.
            "ExecutorLostFailure",
            "FetchFailedException",
            # The driver was frozen for longer than it waits for an answer of its own parts.
            "RpcTimeoutException",
        )
    )
)
# What the product says, and Spark of a checkpoint that two drivers write to: to the line's end.
SAID = re.compile(r"(spark_eos\.errors\.\w+Error\b|\[CONCURRENT_STREAM_LOG_UPDATE\]).*")
# An error may be told together with the one that it came from.
NEVER = re.compile(
    r"\b(OptionError|OperatorError|NonDeterministicReplayError|DataLossError|GroupInUseError"
    r"|TopicReplacedError|OutcomeUnknownError|LogError|ForeignTableError"
    r"|NestedLogError|LogVersionError|CorruptLogError)\b"
)


@dataclass(frozen=True, slots=True)
class Cause:
    """Words, the faults that can bring them about, and for how long behind the end of these.

    With `beside` they may come for as long as a zombie is there: two drivers hinder each other.
    """

    words: re.Pattern
    faults: re.Pattern
    grace_s: float
    beside: bool = False


def _cause(words, faults, grace_s, *, beside=False):
    found = words if isinstance(words, re.Pattern) else re.compile(words)
    return Cause(found, re.compile("|".join(faults)), grace_s, beside)


CAUSES = (
    # The log cannot be written or read: now, or another driver writes to it all the time.
    _cause(r"\.RetriableError: .*transaction log at", (_DISK, _TWO), AT_ONCE_S, beside=True),
    # Asked for a decided transaction, the cluster does not say what became of it.
    _cause(
        r"\.RetriableError: batch \d+ .* is decided",
        (_CLUSTER, _FROZEN, _SLOWED, _TWO),
        WAITED_S,
        beside=True,
    ),
    # A deadline was over: of one who waited for an answer, or stood still before it asked.
    _cause(r"\.BrokerUnreachableError\b", (_CLUSTER, _FROZEN), WAITED_S),
    # The same for records, which can also be refused: their transaction timed out, or was fenced.
    _cause(r"\.DeliveryError\b", (_CLUSTER, _FROZEN, _TWO), WAITED_S, beside=True),
    # It timed out, or came too close to that, in whatever makes a batch slow; or it was fenced.
    _cause(r"\.TransactionLostError\b", (_CLUSTER, _FROZEN, _SLOWED, _TWO), WAITED_S, beside=True),
    _cause(r"\.FencedError\b", (_TWO,), WAITED_S, beside=True),
    # Kafka has more than the log: that was put back, or another driver has a copy of it.
    _cause(r"\.StaleLogError\b", (_PEOPLE,), AT_ONCE_S),
    # Only JVMs write to the checkpoint, and no other fault leaves two of them.
    _cause(r"\[CONCURRENT_STREAM_LOG_UPDATE\]", (ZOMBIE,), WAITED_S, beside=True),
    _cause(GONE, (_PROCESSES,), AT_ONCE_S),
    _cause(GONE, ("clock-.+",), CLOCK_S),
)


def ended_well(driver, run):
    """Stopped as it was told to, killed by the bench, or failed with what a fault explains.

    `driver` is the event of its end, `run` has all faults and drivers.
    """
    if driver["outcome"] == "failed":
        return explaining(driver, run) is not None
    killed = ("killed", f"exit status {-signal.SIGKILL}")
    return driver["outcome"] == "ended" or (driver["outcome"], driver["text"]) == killed


def explaining(driver, run):
    """The fault that explains why a driver failed; None where none does, or it did not fail.

    Of several it is the last one.
    """
    if driver["outcome"] != "failed" or NEVER.search(driver["text"]):
        return None
    said = {match[0] for match in SAID.finditer(driver["text"])}
    if not said and (gone := GONE.search(driver["text"])):
        said = {gone[0]}
    found = [_explaining(words, driver["at"], run) for words in said]
    if not found or None in found:
        return None
    return max(found, key=lambda fault: fault.start)


def _explaining(words, at, run):
    causes = [cause for cause in CAUSES if cause.words.search(words)]
    for fault in reversed(run.faults):
        for cause in causes:
            over = _alone_again(fault, run.drivers) if cause.beside else fault.end
            if cause.faults.fullmatch(fault.name) and fault.start <= at <= over + cause.grace_s:
                return fault
    return None


def _alone_again(fault, drivers):
    """When a fault was over for those who come instead: a zombie is there until it has ended."""
    if fault.name != ZOMBIE:
        return fault.end
    ends = [
        driver["at"]
        for driver in drivers
        if driver["phase"] == "end" and f"driver {driver['number']}" == fault.target
    ]
    return max([fault.end, *ends])
