"""Delivery reports: what was written is known, or the attempt fails."""

from dataclasses import dataclass

import pytest

from spark_eos.errors import DeliveryError
from spark_eos.kafka.delivery import DeliveryReports
from spark_eos.protocol.transaction import PartitionOffsets

# What librdkafka reports for a record that the broker had already, from a request before.
OFFSET_INVALID = -1001


@dataclass
class Delivered:
    """A message as librdkafka reports it. No broker can be made to leave out an offset."""

    at: tuple[int, int]

    def partition(self) -> int:
        return self.at[0]

    def offset(self) -> int:
        return self.at[1]


def reports(*places: tuple[int, int]) -> DeliveryReports:
    found = DeliveryReports("some-id")
    for place in places:
        found.callback("t")(None, Delivered(place))  # type: ignore[arg-type]
    return found


def test_offsets_are_added_up_by_partition() -> None:
    found = reports((1, 7), (0, 3), (1, 8), (1, 10))
    assert found.delivered == 4
    assert found.partitions() == (
        PartitionOffsets(topic="t", partition=0, first_offset=3, last_offset=3, records=1),
        PartitionOffsets(topic="t", partition=1, first_offset=7, last_offset=10, records=3),
    )


@pytest.mark.parametrize("offsets", [(OFFSET_INVALID,), (OFFSET_INVALID, 5), (5, OFFSET_INVALID)])
def test_record_at_an_unknown_offset_fails_the_attempt(offsets: tuple[int, ...]) -> None:
    found = reports(*((0, offset) for offset in offsets))
    with pytest.raises(DeliveryError, match=r"some-id.*does not say at which offsets"):
        found.partitions()
