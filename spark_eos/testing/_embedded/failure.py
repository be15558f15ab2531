"""Test process. The error of the local broker."""

from spark_eos.errors import SparkEosError


class EmbeddedKafkaError(SparkEosError):
    """The local broker cannot run, or something that it needs is missing on this machine."""
