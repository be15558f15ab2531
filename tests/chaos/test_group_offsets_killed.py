"""A consumer group and the rows agree after every crash: both moved, or neither."""

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.chaos.oracle import committed_values
from tests.chaos.transactions import end_open_transactions

GROUP = "moved-by-the-query"


class Loop:
    """A scenario that reads a topic, too."""

    def __init__(self, scenario, read_topic):
        self.scenario, self.read_topic = scenario, read_topic
        scenario.options["group.id"] = f"{GROUP}-{read_topic}"
        producer = Producer({"bootstrap.servers": scenario.bootstrap_servers})
        scenario.rows = [str(number) for number in range(600)]
        for number in scenario.rows:
            producer.produce(read_topic, number, partition=int(number) % 2)
        assert producer.flush(30) == 0

    def driver(self, *arm):
        return self.scenario.driver(*arm, read_topic=self.read_topic)

    def run(self, **settings):
        self.scenario.run(read_topic=self.read_topic, **settings)

    def plain_consumer(self):
        return Consumer(
            {
                "bootstrap.servers": self.scenario.bootstrap_servers,
                "group.id": self.scenario.options["group.id"],
                "isolation.level": "read_committed",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
            }
        )

    def moved(self):
        """How many records the group has read, as a lag tool sees it."""
        places = [TopicPartition(self.read_topic, partition) for partition in (0, 1)]
        consumer = self.plain_consumer()
        found = consumer.committed(places, timeout=30)
        consumer.close()
        return sum(max(0, place.offset) for place in found)

    def visible(self):
        return len(committed_values(self.scenario.bootstrap_servers, self.scenario.topic))


@pytest.fixture
def loop(scenario, topic):
    return Loop(scenario, topic(2))


@pytest.mark.slow
def test_driver_killed_around_the_offsets(loop):
    for step in ("offsets-prepared", "checked", "decided", "completed"):
        with loop.driver(step) as driver:
            driver.wait_for(step)
            driver.kill()
    loop.run()
    loop.scenario.check()
    assert loop.moved() == loop.visible() == 600


@pytest.mark.slow
@pytest.mark.parametrize("commit", [{0, 1, 2, 3}, {"offsets"}], ids=["rows", "offsets"])
def test_batch_of_which_only_a_part_was_committed(loop, commit):
    """Decided; of rows and offsets one is committed and the other lost, and the driver is dead.

    In neither case does it matter that the batch comes back with another number of partitions.
    """
    with loop.driver("decided") as driver:
        driver.wait_for("decided")
        driver.kill()
    end_open_transactions(loop.scenario, commit_partitions=commit)
    assert (loop.visible(), loop.moved()) == ((0, 200) if commit == {"offsets"} else (200, 0))
    loop.run(partitions=7)
    loop.scenario.check()
    assert loop.moved() == 600


@pytest.mark.slow
def test_plain_consumer_takes_over_from_a_killed_query(loop):
    """A batch was decided and not ended: the consumer waits until it is one or the other."""
    loop.scenario.options["kafka.transaction.timeout.ms"] = "8000"
    with loop.driver("completed") as driver:
        driver.wait_for("completed")
        driver.arm("decided")
        driver.go("completed")
        driver.wait_for("decided")
        driver.kill()
    consumer = loop.plain_consumer()
    consumer.subscribe([loop.read_topic])
    seen = []
    while len(seen) < 400:
        message = consumer.poll(30)
        assert message is not None, f"{len(seen)} records"
        seen.append(message.value().decode())
    assert consumer.poll(1) is None
    consumer.close()
    written = committed_values(loop.scenario.bootstrap_servers, loop.scenario.topic).values()
    assert sorted([*written, *seen], key=int) == loop.scenario.rows
