"""Task worker. The producer id and epoch, from librdkafka's statistics (docs/design/kafka.md)."""

import json
from typing import ClassVar, Final

from spark_eos._protocol.transactions.transaction import ProducerIdentity

_SHORTEST_MS: Final = 10
_BYTES_A_MS: Final = 5_000


class ProducerIdentityCapture:
    """Has no reference to its producer: a cycle would keep a dropped client alive."""

    _largest: ClassVar = 0  # the largest statistics of this process

    def __init__(self, transactional_id: str) -> None:
        self.identity: ProducerIdentity | None = None
        self._transactional_id = transactional_id

    @classmethod
    def interval_ms(cls) -> int:
        """The interval of the statistics for the next producer of this process."""
        return max(_SHORTEST_MS, cls._largest // _BYTES_A_MS)

    def take(self, statistics: str) -> None:
        """The statistics callback of librdkafka."""
        ProducerIdentityCapture._largest = max(ProducerIdentityCapture._largest, len(statistics))
        # librdkafka bumps the epoch only after an error, and every error fails the attempt.
        if self.identity is None:
            eos = json.loads(statistics)["eos"]
            if eos["producer_epoch"] >= 0:
                self.identity = ProducerIdentity(
                    transactional_id=self._transactional_id,
                    producer_id=eos["producer_id"],
                    producer_epoch=eos["producer_epoch"],
                )
