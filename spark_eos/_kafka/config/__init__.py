"""How people configure a Kafka client, in Java's and in librdkafka's names."""
