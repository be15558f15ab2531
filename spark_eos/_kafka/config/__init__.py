"""Every process. Options of Kafka clients, by librdkafka's and the Java client's names."""
