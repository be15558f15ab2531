"""The options of `df.write`: which belong together, and what names an application."""

import pytest

from spark_eos._options import (
    AtLeastOnceOptions,
    BatchWriteOptions,
    WriteOptions,
    batch_write_options,
    sink_options,
)
from spark_eos.errors import OptionError

SERVERS = {"kafka.bootstrap.servers": "127.0.0.1:9092"}
JOB = SERVERS | {"txnAppId": "daily", "txnVersion": "7", "transactionLog": "/log"}


def test_application_has_the_same_id_every_time_and_no_other_has_it():
    one, again = batch_write_options(JOB), batch_write_options(JOB)
    assert isinstance(one, BatchWriteOptions)
    assert one == again
    assert (one.version, one.transaction_log, one.application) == (7, "/log", "daily")
    other = batch_write_options(JOB | {"txnAppId": "Daily"})
    assert isinstance(other, BatchWriteOptions)
    assert other.query_id != one.query_id


def test_write_without_a_name_is_a_new_one_each_time():
    one, other = batch_write_options(SERVERS), batch_write_options(SERVERS)
    assert isinstance(one, BatchWriteOptions)
    assert isinstance(other, BatchWriteOptions)
    assert one.query_id != other.query_id
    assert (one.version, one.transaction_log, one.application) == (0, None, None)


def test_at_least_once_needs_no_more_than_servers():
    given = SERVERS | {"deliveryGuarantee": "AT_LEAST_ONCE"}
    assert type(batch_write_options(given)) is WriteOptions
    stream = sink_options(given)
    assert type(stream) is AtLeastOnceOptions
    assert (stream.checkpoint_location, stream.transaction_log) == (None, None)


@pytest.mark.parametrize(
    ("options", "given", "text"),
    [
        (batch_write_options, SERVERS | {"txnAppId": "a"}, "option txnVersion is missing"),
        (batch_write_options, SERVERS | {"txnVersion": "1"}, "option txnAppId is missing"),
        (batch_write_options, JOB | {"txnVersion": "-1"}, "txnVersion '-1': 0 to"),
        (batch_write_options, JOB | {"txnVersion": "x"}, "txnVersion 'x': 0 to"),
        (batch_write_options, JOB | {"txnAppId": " "}, "option txnAppId is empty"),
        (batch_write_options, JOB | {"checkpointLocation": "/c"}, "is for streaming writes only"),
        (
            batch_write_options,
            JOB | {"group.id": "g"},
            "group.id is for streaming writes only",
        ),
        (batch_write_options, JOB | {"deliveryGuarantee": "at_least_once"}, "has no meaning"),
        (
            batch_write_options,
            SERVERS | {"transactionLog": "/log"},
            "option txnAppId is missing: a later run finds a write in transactionLog by txnAppId",
        ),
        (sink_options, SERVERS | {"txnAppId": "a"}, "option txnAppId is for batch writes only"),
        (
            sink_options,
            SERVERS | {"deliveryGuarantee": "at_least_once", "group.id": "g"},
            "option group.id has no meaning",
        ),
    ],
)
def test_mistake_is_named(options, given, text):
    with pytest.raises(OptionError, match=text):
        options(given)


def test_missing_log_of_a_named_write_is_named():
    given = {name: value for name, value in JOB.items() if name != "transactionLog"}
    with pytest.raises(OptionError, match="option transactionLog is missing"):
        batch_write_options(given)
