"""The options of isolation.level snapshot: what they need, and with what they do not go."""

import pytest

from spark_eos._options import batch_options, stream_options
from spark_eos._protocol.offsets.isolation import IsolationLevel
from spark_eos.errors import OptionError

GIVEN = {"kafka.bootstrap.servers": "b:1", "subscribe": "t", "isolation.level": "Snapshot"}
LOG = GIVEN | {"transactionLog": "/log"}


def test_kafka_is_read_committed_and_the_log_says_where_to_end():
    options = batch_options(LOG | {"queryId": "q", "startingBatch": "3", "endingBatch": "3"})
    assert options.isolation_level is IsolationLevel.READ_COMMITTED
    found = options.snapshot
    assert (found.transaction_log, found.query_id) == ("/log", "q")
    assert (found.starting_batch, found.ending_batch, found.names_batches) == (3, 3, True)
    assert not stream_options(LOG).snapshot.names_batches


@pytest.mark.parametrize(
    ("options", "given", "text"),
    [
        (batch_options, GIVEN, "option transactionLog is missing"),
        (batch_options, LOG | {"startingBatch": "-1"}, "startingBatch '-1': 0 to"),
        (batch_options, LOG | {"startingBatch": "2", "endingBatch": "1"}, "2 is after endingB"),
        (
            batch_options,
            LOG | {"endingBatch": "1", "endingOffsets": "latest"},
            "cannot be combined with startingBatch",
        ),
        (
            batch_options,
            LOG | {"endingBatch": "1", "startingTimestamp": "5"},
            "cannot be combined with startingBatch",
        ),
        (stream_options, LOG | {"startingBatch": "1"}, "startingBatch is for batch reads only"),
        (
            batch_options,
            LOG | {"isolation.level": "read_committed"},
            "option transactionLog needs isolation.level snapshot",
        ),
    ],
)
def test_mistake_is_named(options, given, text):
    with pytest.raises(OptionError, match=text):
        options(given)
