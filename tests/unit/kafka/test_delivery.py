"""Delivery reports: what was written is known, or the attempt fails."""

from dataclasses import dataclass

import pytest
from confluent_kafka import KafkaError

from spark_eos._kafka.produce.delivery import DeliveryReports
from spark_eos._protocol.offsets.topic_partition import PartitionOffsets
from spark_eos.errors import DeliveryError

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
    found = DeliveryReports("b:1", "some-id")
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


CODES = [
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError._MSG_TIMED_OUT,
    KafkaError._FENCED,
    KafkaError.INVALID_PRODUCER_EPOCH,
]


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("topic", [None, "t"])
def test_text_of_a_transaction_names_its_id(code: int, topic: str | None) -> None:
    assert "some-id" in str(DeliveryReports("b:1", "some-id").to_error(KafkaError(code), topic))


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("topic", [None, "t"])
def test_text_of_a_write_without_a_transaction_speaks_of_none(code: int, topic: str | None) -> None:
    error = DeliveryReports("b:1", None).to_error(KafkaError(code), topic)
    text = str(error)
    assert "transaction" not in text.replace("TRANSACTIONAL_ID", "")
    assert "None" not in text
    if isinstance(error, DeliveryError):
        assert "stays visible" in text
        assert "writes it again" in text
    else:
        assert "grant WRITE and DESCRIBE on" in text


def test_failure_that_was_raised_holds_nobody_who_met_it() -> None:
    """Else what was sent with lives on until Python looks for cycles, with all its threads."""
    found = DeliveryReports("b:1", "some-id")
    found.failure = DeliveryError("the row was refused")
    for _ in range(2):  # whoever goes on meets it again
        with pytest.raises(DeliveryError, match="the row was refused"):
            found.raise_failure()
    assert found.failure.__traceback__ is None
