"""How a driver of the bench may end, told by its last words. Pure.

The input can always be read again, the same, so no error that asks for a person may come. What
Spark says on its own counts only where a process that was killed or frozen explains it.
"""

import re
import signal

_CONNECTION_LOST = r"(EOFException|Broken pipe|Connection reset).*(\n\s+at .*)*"
EXPECTED = re.compile(
    "|".join(
        (
            r"spark_eos\.errors\.(Retriable|BrokerUnreachable|TransactionLost|Delivery|Fenced)Error\b",
            # There were two drivers, and the other wrote to the checkpoint.
            r"\[CONCURRENT_STREAM_LOG_UPDATE\]",
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


def ended_well(outcome, text):
    """Stopped as it was told to, killed by the bench, or failed with what a restart mends."""
    if outcome == "failed":
        return bool(EXPECTED.search(text)) and not NEVER.search(text)
    return outcome == "ended" or (outcome, text) == ("killed", f"exit status {-signal.SIGKILL}")
