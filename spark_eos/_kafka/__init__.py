"""Every process. Only this package imports kafka-python (lazily: 250 ms) and confluent_kafka."""
