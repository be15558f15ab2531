"""How a driver of the bench may end, told by its last words and by what was done to it. Pure.

The input can always be read again, the same, so no error that asks for a person may come. No error
comes of itself either: a driver fails after a fault. What Spark says of a process that is gone
counts only after a fault that kills or freezes processes.
"""

import re
import signal

# What the product says, and Spark of a checkpoint that two drivers write to.
SAID = re.compile(
    r"spark_eos\.errors\.(Retriable|BrokerUnreachable|TransactionLost|Delivery|Fenced)Error\b"
    r"|\[CONCURRENT_STREAM_LOG_UPDATE\]"
)
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
# An error may be told together with the one that it came from.
NEVER = re.compile(
    r"\b(OptionError|OperatorError|NonDeterministicReplayError|DataLossError|GroupInUseError"
    r"|OutcomeUnknownError|LogError|ForeignTableError|LogVersionError|CorruptLogError)\b"
)
# A clock that jumps freezes who waits on it.
OF_PROCESSES = re.compile("(driver|executor|worker|zombie|time-out|torn|power|clock)-")


def ended_well(outcome, text, faults=()):
    """Stopped as it was told to, killed by the bench, or failed with what a restart mends.

    `faults` are the names of those that may have to do with it.
    """
    if outcome == "failed" and not NEVER.search(text):
        if SAID.search(text):
            return bool(faults)
        return bool(GONE.search(text)) and any(OF_PROCESSES.match(name) for name in faults)
    return outcome == "ended" or (outcome, text) == ("killed", f"exit status {-signal.SIGKILL}")
