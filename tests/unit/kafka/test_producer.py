"""What the client raises while it is served, as errors of this project."""

import ctypes
import gc
import weakref

import pytest
from confluent_kafka import KafkaError, KafkaException

from spark_eos._kafka.config.client_config import ClientConfig
from spark_eos._kafka.produce.idempotent_producer import IdempotentProducer
from spark_eos.errors import DeliveryError

NEVER_LET_GO = []
FATAL = KafkaError(KafkaError._FENCED, "fenced", fatal=True)
raise_as_c = ctypes.pythonapi.PyErr_SetObject
raise_as_c.argtypes = [ctypes.py_object, ctypes.py_object]
raise_as_c.restype = None


@pytest.mark.parametrize("kind", [KafkaException, KafkaError, SystemError])
def test_fatal_error_is_told_in_whatever_form_it_comes(kind):
    """A KafkaError is no exception: `except BaseException` lets it pass."""
    config = ClientConfig.from_options({"bootstrap.servers": "127.0.0.1:1"})
    producer = IdempotentProducer(config, "spark-eos-q-0", send_timeout_ms=1_000)

    def serve(_timeout_s):
        raise_as_c(kind, FATAL)

    with pytest.raises(DeliveryError, match="spark-eos-q-0"):
        producer._serve(serve, 0)


def raise_kafka_error(_timeout_s):
    raise_as_c(KafkaError, KafkaError(KafkaError._FENCED, "fenced", fatal=True))


def raise_system_error(_timeout_s):
    """As the client does where another report follows: and nobody lets go of either any more."""
    try:
        raise KafkaException(FATAL)
    except KafkaException as cause:
        error = SystemError("returned a result with an exception set")
        NEVER_LET_GO.extend([error, cause])
        raise error from cause


@pytest.mark.parametrize("serve", [raise_kafka_error, raise_system_error])
def test_producer_that_failed_is_not_kept(serve):
    """It would go on asking for its brokers, and count statistics that nobody takes."""
    config = ClientConfig.from_options({"bootstrap.servers": "127.0.0.1:1"})
    producer = IdempotentProducer(config, "spark-eos-q-0", send_timeout_ms=1_000)
    kept = weakref.ref(producer)
    with pytest.raises(DeliveryError):
        producer._serve(serve, 0)
    del producer
    gc.collect()
    assert kept() is None
