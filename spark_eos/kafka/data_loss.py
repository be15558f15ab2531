"""Every process. Offsets that were to be read and are gone: an error, or a warning, as asked."""

import logging
from dataclasses import dataclass

from spark_eos.errors import DataLossError

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class DataLoss:
    """The option failOnDataLoss."""

    fail: bool

    def report(self, what: str) -> None:
        """Raise, or warn and return: the caller then goes on without these records."""
        self._report(
            f"records that were to be read are gone from Kafka: {what}. Retention removed them, or "
            "the topic was deleted and made anew. To go on without them set failOnDataLoss to "
            "false; that they stay next time, keep them longer than the query may be down",
            what,
        )

    def report_left_out(self, what: str, option: str) -> None:
        """The same for records that are there, and that the query was told not to read any more."""
        self._report(
            f"records that were to be read would be left out: {what}. Put it back into {option}, or"
            " to go on without it set failOnDataLoss to false",
            what,
        )

    def _report(self, text: str, what: str) -> None:
        if self.fail:
            raise DataLossError(text)
        _LOG.warning("failOnDataLoss is false, going on without them: %s", what)
