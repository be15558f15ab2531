"""The only package that knows confluent_kafka and kafka-python.

It imports nothing here: kafka-python takes a quarter of a second to load, and only who asks a
coordinator should pay for it; a task, which only writes, does not.
"""
