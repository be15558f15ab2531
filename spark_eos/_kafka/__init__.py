"""Every process. The only package that imports confluent_kafka and kafka-python."""
