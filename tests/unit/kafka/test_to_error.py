"""A Kafka error code into an error of this project: what the caller must do next is its class."""

import pytest
from confluent_kafka import KafkaError

from spark_eos._kafka.to_error import NOT_AUTHORIZED, Request, no_answer, to_error
from spark_eos.errors import (
    BrokerUnreachableError,
    DeliveryError,
    FencedError,
    OptionError,
)

ASKED = Request(servers="b:1", to="describe topic 't'", rights="DESCRIBE on topic 't'", topic="t")
WRITE = Request(
    servers="b:1",
    to="take a record for topic 't'",
    rights="WRITE on topic 't'",
    topic="t",
    transactional_id="id",
    is_write=True,
    record_size=9,
)
OF_ID = Request(servers="b:1", to="end 'id'", rights="WRITE on 'id'", transactional_id="id")


@pytest.mark.parametrize("code", sorted(NOT_AUTHORIZED))
@pytest.mark.parametrize("request_", [ASKED, WRITE, OF_ID], ids=["asked", "write", "id"])
def test_missing_right_is_named_with_what_it_is_for(code, request_):
    error = to_error(code, "not authorized", request_)
    assert type(error) is OptionError
    assert str(error) == (f"b:1 does not allow this user to {request_.to}: grant {request_.rights}")
    assert (error.topic, error.transactional_id) == (request_.topic, request_.transactional_id)


@pytest.mark.parametrize(
    ("code", "request_", "kind", "text"),
    [
        (KafkaError.NOT_COORDINATOR, ASKED, BrokerUnreachableError, "b:1 did not describe topic"),
        (KafkaError.INVALID_REQUEST, ASKED, OptionError, "b:1 refused to describe topic 't': said"),
        (KafkaError.PRODUCER_FENCED, OF_ID, FencedError, "Another driver took this id over"),
        (KafkaError.PRODUCER_FENCED, WRITE, DeliveryError, "Nothing of it is visible"),
        (KafkaError._MSG_TIMED_OUT, WRITE, DeliveryError, "b:1 did not take a record for topic"),
        (KafkaError.MSG_SIZE_TOO_LARGE, WRITE, OptionError, "a record of 9 bytes"),
        (KafkaError.INVALID_RECORD, WRITE, OptionError, "A compacted topic needs a key"),
        (KafkaError.UNKNOWN_TOPIC_OR_PART, WRITE, OptionError, "topic 't' does not exist"),
        (
            KafkaError.INVALID_TRANSACTION_TIMEOUT,
            OF_ID,
            OptionError,
            "kafka.transaction.timeout.ms",
        ),
    ],
)
def test_code_says_what_to_do(code, request_, kind, text):
    error = to_error(code, "said", request_)
    assert type(error) is kind
    assert text in str(error)


def test_what_librdkafka_calls_retriable_is_asked_again():
    found = to_error(KafkaError.INVALID_REQUEST, "said", ASKED, retriable=True)
    assert type(found) is BrokerUnreachableError


def test_refused_login_is_told_from_no_answer():
    away = no_answer("b:1", "tell its id", "refused", login_refused=False)
    assert type(away) is BrokerUnreachableError
    assert str(away) == "b:1 did not tell its id within the deadline: refused"
    wrong = no_answer("b:1", "tell its id", "wrong password", login_refused=True)
    assert type(wrong) is OptionError
    assert str(wrong).startswith("b:1 refused the login, see kafka.security.protocol")
