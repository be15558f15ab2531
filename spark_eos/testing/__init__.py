"""A real Kafka on this machine, for tests, benchmarks and the demo.

Runs beside the product, never inside of it: nothing under a Spark query imports this package, and
it imports no Kafka client, so that what is tested against the broker does not start the broker.
"""

from spark_eos.testing._embedded.cluster import EmbeddedKafka
from spark_eos.testing._embedded.failure import EmbeddedKafkaError

__all__ = ["EmbeddedKafka", "EmbeddedKafkaError"]
