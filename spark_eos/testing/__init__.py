"""Test process: a test, a benchmark, the demo or `spark-eos broker`. A real Kafka on this machine.

No Spark query imports this package. It imports no Kafka client, so the tested clients never start
the broker.
"""

from spark_eos.testing._embedded.cluster import EmbeddedKafka
from spark_eos.testing._embedded.failure import EmbeddedKafkaError

__all__ = ["EmbeddedKafka", "EmbeddedKafkaError"]
