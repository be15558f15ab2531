"""librdkafka's own lines: in Python's logging, with whose client it is, and not on stderr."""

import logging
import time

import pytest
from confluent_kafka import Producer

from spark_eos._kafka.client_log import ClientLog


def test_lines_of_a_client_are_information_with_its_name(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    log = ClientLog("batch 7, spark-eos-q-0")
    producer = Producer({"bootstrap.servers": "127.0.0.1:1", "logger": log})
    until = time.monotonic() + 20
    with caplog.at_level(logging.INFO, logger="spark_eos"):
        while not caplog.records and time.monotonic() < until:
            producer.poll(0.1)
    line = caplog.records[0]
    assert line.levelno == logging.INFO
    assert line.getMessage().startswith("batch 7, spark-eos-q-0: FAIL [rdkafka#producer")
    assert "refused" in line.getMessage()
    assert capfd.readouterr().err == ""
