"""Driver. Why a request has no response: a value that is returned, in Kafka's own codes."""

from dataclasses import dataclass

from spark_eos._protocol.transactions.outcome import ErrorCode


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """No response came; the text says why, and holds no secret."""

    code: ErrorCode
    text: str
    login_refused: bool = False  # asking again cannot help
