"""The options of isolation.level snapshot."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from spark_eos._options.values import number, text
from spark_eos._protocol.offsets.isolation import IsolationLevel
from spark_eos.errors import OptionError


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotOptions:
    """Whose micro-batches are read whole, and which."""

    transaction_log: str
    query_id: str | None
    starting_batch: int | None
    ending_batch: int | None

    @property
    def names_batches(self) -> bool:
        """Whether just some micro-batches are read."""
        return self.starting_batch is not None or self.ending_batch is not None


def snapshot(given: Mapping[str, str], level: IsolationLevel) -> SnapshotOptions | None:
    """Check and freeze them; None, and none may be given, at another isolation level."""
    if level is not IsolationLevel.SNAPSHOT:
        for name in ("transactionLog", "queryId", "startingBatch", "endingBatch"):
            if name.lower() in given:
                raise OptionError(f"option {name} needs isolation.level snapshot")
        return None
    log = text(given, "transactionLog")
    if log is None:
        raise OptionError("option transactionLog is missing: isolation.level snapshot reads it")
    found = SnapshotOptions(
        transaction_log=log,
        query_id=text(given, "queryId"),
        starting_batch=number(given, "startingBatch", least=0),
        ending_batch=number(given, "endingBatch", least=0),
    )
    first, last = found.starting_batch, found.ending_batch
    if first is not None and last is not None and first > last:
        raise OptionError(f"startingBatch {first} is behind endingBatch {last}")
    if found.names_batches:
        for name in given:
            if re.fullmatch(r"(starting|ending)(offsets|timestamp|offsetsbytimestamp)", name):
                raise OptionError(f"option {name} and startingBatch or endingBatch: give one kind")
    return found
