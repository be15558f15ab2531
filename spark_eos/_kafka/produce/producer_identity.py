"""Task worker. Who a producer is: librdkafka tells its id and epoch in its statistics alone.

They cannot be stopped, or asked for when they are needed. For a micro-batch of a few rows they must
come often, or its task waits for them. But they tell of each partition of a topic: every 10 ms, a
topic of 1,000 partitions would cost a quarter of a core.
"""

import json
from typing import ClassVar, Final

from spark_eos._protocol.transactions.transaction import ProducerIdentity

_SHORTEST_MS: Final = 10
_BYTES_A_MS: Final = 5_000


class ProducerIdentityCapture:
    """Takes the identity. Knows no producer: a cycle would keep a dropped client alive."""

    _largest: ClassVar = 0  # of all that this process has seen

    def __init__(self, transactional_id: str) -> None:
        self.identity: ProducerIdentity | None = None
        self._transactional_id = transactional_id

    @classmethod
    def interval_ms(cls) -> int:
        """How often the next producer of this process should tell."""
        return max(_SHORTEST_MS, cls._largest // _BYTES_A_MS)

    def take(self, statistics: str) -> None:
        """What librdkafka calls."""
        ProducerIdentityCapture._largest = max(ProducerIdentityCapture._largest, len(statistics))
        # An epoch does not change while its transaction can be committed: librdkafka bumps it only
        # after an error, and every error fails the attempt.
        if self.identity is None:
            eos = json.loads(statistics)["eos"]
            if eos["producer_epoch"] >= 0:
                self.identity = ProducerIdentity(
                    transactional_id=self._transactional_id,
                    producer_id=eos["producer_id"],
                    producer_epoch=eos["producer_epoch"],
                )
