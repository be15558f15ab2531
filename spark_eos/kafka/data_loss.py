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
        if not self.fail:
            _LOG.warning("failOnDataLoss is false, going on without them: %s", what)
            return
        raise DataLossError(
            f"records that were to be read are gone from Kafka: {what}. Retention removed them, or "
            "the topic was deleted and made anew. To go on without them set failOnDataLoss to "
            "false; that they stay next time, keep them longer than the query may be down"
        )
