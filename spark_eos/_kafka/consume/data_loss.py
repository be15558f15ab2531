"""Every process. Reports lost records as an error or a warning, as failOnDataLoss says."""

import logging
from dataclasses import dataclass

from spark_eos.errors import DataLossError

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class DataLoss:
    """The option failOnDataLoss."""

    fail: bool

    def report(self, what: str, *, topic: str) -> None:
        """Raise, or warn and return. The caller then goes on without the records."""
        self._report(
            "records to read are gone from Kafka: {what}. Retention removed them, or the topic was"
            " deleted and created again. To go on without them, set failOnDataLoss to false. To"
            " prevent this, raise the topic's retention above the time that the query may be down",
            what=what,
            topic=topic,
        )

    def report_replaced(self, what: str, *, topic: str) -> None:
        """The same for a topic that was deleted and created again, as its id shows."""
        self._report(
            "{what}. The unread records of the old topic are gone. To read the new topic from its"
            " beginning, start with a new checkpointLocation and startingOffsets earliest. Or set"
            " failOnDataLoss to false: the query then goes on with the new topic from its earliest"
            " offset",
            going_on="with the new topic from its earliest offset",
            what=what,
            topic=topic,
        )

    def report_left_out(self, what: str, option: str, *, topic: str) -> None:
        """The same for records that exist but are not selected by the options any more."""
        self._report(
            "records to read would be left out: {what}. Put it back into {option}, or set"
            " failOnDataLoss to false to go on without it",
            what=what,
            option=option,
            topic=topic,
        )

    def _report(self, text: str, *, going_on: str = "without them", **fields: str) -> None:
        if self.fail:
            raise DataLossError(text, **fields)
        _LOG.warning("failOnDataLoss is false, going on %s: %s", going_on, fields["what"])
