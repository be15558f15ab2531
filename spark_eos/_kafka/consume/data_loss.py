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
            "the topic was deleted and created again. To go on without them, set failOnDataLoss to "
            "false. To prevent this, raise the topic's retention above the time that the query may "
            "be down",
            f"going on without them: {what}",
        )

    def report_replaced(self, what: str) -> None:
        """The same for a topic that was deleted and created again, which is named by its id."""
        self._report(
            f"{what}. What was not read of the old topic is gone. To read the new topic from its"
            " beginning, start with a new checkpointLocation and startingOffsets earliest. Or set"
            " failOnDataLoss to false: the query then goes on with the new topic from its earliest"
            " offset",
            f"going on with the new topic from its earliest offset: {what}",
        )

    def report_left_out(self, what: str, option: str) -> None:
        """The same for records that are there, and that the query was told not to read any more."""
        self._report(
            f"records that were to be read would be left out: {what}. Put it back into {option}, or"
            " to go on without it set failOnDataLoss to false",
            f"going on without them: {what}",
        )

    def _report(self, text: str, warning: str) -> None:
        if self.fail:
            raise DataLossError(text)
        _LOG.warning("failOnDataLoss is false, %s", warning)
