"""What the tests of the source share."""

import logging

import pytest


@pytest.fixture
def warnings(caplog):
    """The texts of the warnings, as they come."""
    caplog.set_level(logging.WARNING, logger="spark_eos")

    def texts():
        return [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]

    return texts
