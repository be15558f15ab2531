"""The one error of the embedded broker. Its text says what to do; no caller needs more classes."""

from __future__ import annotations

from spark_eos.errors import SparkEosError


class EmbeddedKafkaError(SparkEosError):
    """The local broker, or something it needs on this machine, is not there."""
