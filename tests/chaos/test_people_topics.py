"""What people do to topics, consumer groups and the prefix of the ids between two runs."""

import time
from contextlib import contextmanager

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic
from kafka import KafkaAdminClient

from spark_eos.testing import EmbeddedKafka
from tests.chaos.conftest import ROWS_PER_FILE, Scenario, slow
from tests.chaos.oracle import (
    assert_exactly_once,
    assert_none_open,
    committed_values,
    open_partitions,
)
from tests.chaos.test_group_offsets_killed import Loop
from tests.chaos.test_people import CODE
from tests.chaos.transactions import end_open_transactions
from tests.conftest import SMALL_JVM

WAIT_S = 30


@contextmanager
def admin_of(scenario):
    yield AdminClient({"bootstrap.servers": scenario.bootstrap_servers})


def delete_topic(scenario):
    with admin_of(scenario) as admin:
        admin.delete_topics([scenario.topic])[scenario.topic].result(WAIT_S)
        deadline = time.monotonic() + WAIT_S
        while scenario.topic in admin.list_topics(timeout=WAIT_S).topics:
            assert time.monotonic() < deadline
            time.sleep(0.1)


def create_topic(scenario):
    with admin_of(scenario) as admin:
        admin.create_topics([NewTopic(scenario.topic, 3)])[scenario.topic].result(WAIT_S)
        deadline = time.monotonic() + WAIT_S
        while scenario.topic not in admin.list_topics(timeout=WAIT_S).topics:
            assert time.monotonic() < deadline
            time.sleep(0.1)


def add_partitions(scenario, total):
    with admin_of(scenario) as admin:
        wanted = [NewPartitions(scenario.topic, total)]
        admin.create_partitions(wanted)[scenario.topic].result(WAIT_S)


def delete_records(scenario):
    """Up to the end."""
    with admin_of(scenario) as admin:
        places = [TopicPartition(scenario.topic, partition, -1) for partition in range(3)]
        for future in admin.delete_records(places).values():
            future.result(WAIT_S)


def kill_at(scenario, step, **settings):
    with scenario.driver(step, **settings) as driver:
        driver.wait_for(step)
        driver.kill()


def fail(scenario, *texts, **settings):
    with scenario.driver(**settings) as driver:
        said = driver.fail()
    for text in texts:
        assert text in said, said[:6000]
    return said


def values(scenario, topic):
    return sorted(committed_values(scenario.bootstrap_servers, topic).values())


@pytest.mark.slow
def test_topic_that_is_deleted_while_nothing_is_pending(scenario):
    """Rows that come later wait for a new one."""
    scenario.add_files(1)
    scenario.run()
    delete_topic(scenario)
    scenario.run()  # nothing to do
    scenario.add_files(1)
    fail(scenario, f"OptionError: topic '{scenario.topic}' does not exist")
    create_topic(scenario)
    scenario.run()
    new = scenario.rows[ROWS_PER_FILE:]
    assert_exactly_once(scenario.bootstrap_servers, scenario.topic, new)


@pytest.mark.slow
def test_topic_that_is_deleted_while_a_decided_batch_is_pending(scenario):
    scenario.add_files(2)
    kill_at(scenario, "decided")
    delete_topic(scenario)
    fail(scenario, f"OptionError: topic '{scenario.topic}' does not exist", "Create it first")
    create_topic(scenario)
    said = fail(scenario, "TopicReplacedError", f"topic '{scenario.topic}' was deleted and created")
    assert committed_values(scenario.bootstrap_servers, scenario.topic) == {}
    (scenario.options["acknowledge"],) = set(CODE.findall(said))
    scenario.run()
    scenario.check()


@pytest.mark.slow
def test_topic_that_gets_partitions_while_a_decided_batch_is_pending(scenario):
    scenario.add_files(2)
    kill_at(scenario, "decided")
    add_partitions(scenario, 6)
    scenario.run()
    scenario.check()
    used = {place[0] for place in committed_values(scenario.bootstrap_servers, scenario.topic)}
    assert used > {0, 1, 2}


@pytest.mark.slow
def test_topic_that_gets_partitions_while_a_decided_batch_is_torn(scenario):
    """The partitions of Kafka are not in the digests: the lost rows may go elsewhere."""
    scenario.add_files(2)
    kill_at(scenario, "decided")
    end_open_transactions(scenario, commit_partitions={0, 2})
    add_partitions(scenario, 6)
    scenario.run()
    scenario.check()


def test_option_topic_is_changed_while_a_decided_batch_is_pending(scenario, topic):
    """It is completed where it was written, and the next one goes to the new topic."""
    first, second = scenario.topic, topic(3)
    scenario.add_files(2)
    kill_at(scenario, "decided")
    scenario.topic = second
    scenario.run()
    assert values(scenario, first) == sorted(scenario.rows[:ROWS_PER_FILE])
    assert values(scenario, second) == sorted(scenario.rows[ROWS_PER_FILE:])
    assert_none_open(scenario.bootstrap_servers, first)


@pytest.mark.slow
def test_option_topic_is_changed_while_a_decided_batch_is_lost(scenario, topic):
    first, second = scenario.topic, topic(3)
    scenario.add_files(2)
    kill_at(scenario, "decided")
    end_open_transactions(scenario, commit_partitions=())
    scenario.topic = second
    scenario.run()
    scenario.check()
    assert values(scenario, first) == []


@pytest.mark.slow
def test_option_topic_is_changed_while_a_decided_batch_is_torn(scenario, topic):
    first, second = scenario.topic, topic(3)
    scenario.add_files(2)
    kill_at(scenario, "decided")
    end_open_transactions(scenario, commit_partitions={0, 2})
    before = values(scenario, first)
    scenario.topic = second
    fail(
        scenario,
        "NonDeterministicReplayError: batch 0 of query",
        "If the query or its option topic was changed, start it once as it was",
    )
    assert (values(scenario, first), values(scenario, second)) == (before, [])
    scenario.topic = first
    scenario.run()
    scenario.check()


@pytest.mark.slow
@pytest.mark.parametrize("committed", [(), (0, 2)])
def test_records_that_are_deleted_before_recovery_could_look(scenario, committed):
    scenario.add_files(2)
    kill_at(scenario, "decided")
    end_open_transactions(scenario, commit_partitions=committed)
    delete_records(scenario)
    fail(
        scenario,
        "OutcomeUnknownError: batch 0 of query",
        "are deleted or compacted away: nobody can tell whether it was committed",
        "write what is missing by hand",
    )
    assert values(scenario, scenario.topic) == []


def test_prefix_is_changed_while_a_decided_batch_is_pending(scenario):
    scenario.add_files(2)
    kill_at(scenario, "decided")
    scenario.options["transactionalIdPrefix"] = "another"
    scenario.run()
    scenario.check()
    scenario.options["transactionalIdPrefix"] = "spark-eos"
    scenario.add_files(1)
    scenario.run()
    scenario.check()


@pytest.mark.slow
def test_prefix_is_changed_before_the_first_batch_is_decided(scenario):
    """The log has no row that says under which one the driver was started."""
    scenario.add_files(1)
    kill_at(scenario, "prepared")
    scenario.options["transactionalIdPrefix"] = "another"
    fail(
        scenario,
        "OperatorError: query",
        "was last started with another transactionalIdPrefix than 'another'",
        "Start it once with the options that it had",
    )
    scenario.options["transactionalIdPrefix"] = "spark-eos"
    scenario.run()
    scenario.options["transactionalIdPrefix"] = "another"
    scenario.add_files(1)
    scenario.run()
    scenario.check()


@pytest.mark.slow
def test_prefix_is_changed_twice_with_a_batch_that_was_not_decided(scenario):
    scenario.add_files(1)
    scenario.run()
    scenario.add_files(1)
    for prefix, step in (("second", "prepared"), ("third", "planned")):
        scenario.options["transactionalIdPrefix"] = prefix
        kill_at(scenario, step)
    scenario.options["transactionalIdPrefix"] = "fourth"
    scenario.run()
    scenario.check()


def test_two_queries_with_one_prefix_at_the_same_time(scenario, topic):
    """Their ids have their own query ids: neither ends what the other has open."""
    first, own = scenario.topic, scenario.checkpoint
    scenario.options["transactionalIdPrefix"] = "shared"
    scenario.add_files(2)
    with scenario.driver("prepared") as driver:
        driver.wait_for("prepared")
        scenario.topic, scenario.checkpoint = topic(3), own.with_name("other")
        scenario.run()
        scenario.check()
        scenario.topic, scenario.checkpoint = first, own
        assert open_partitions(scenario.bootstrap_servers, first)
        driver.go("prepared")
        driver.finish()
    scenario.check()


class People(Loop):
    """Who work on the group of a query, with its consumers gone."""

    def more(self, count=200):
        producer = Producer({"bootstrap.servers": self.scenario.bootstrap_servers})
        for _ in range(count):
            number = len(self.scenario.rows)
            producer.produce(self.read_topic, str(number), partition=number % 2)
            self.scenario.rows.append(str(number))
        assert producer.flush(30) == 0

    def delete_group(self):
        group = self.scenario.options["group.id"]
        with admin_of(self.scenario) as admin:
            admin.delete_consumer_groups([group])[group].result(WAIT_S)

    def reset_group(self, offset):
        consumer = self.plain_consumer()
        places = [TopicPartition(self.read_topic, partition, offset) for partition in (0, 1)]
        consumer.commit(offsets=places, asynchronous=False)
        consumer.close()

    def check(self):
        """The group is exactly where the rows are."""
        self.scenario.check()
        assert self.moved() == self.visible() == len(self.scenario.rows)


@pytest.fixture
def people(scenario, topic):
    return People(scenario, topic(2))


def test_group_is_deleted_reset_and_changed_between_two_runs(people):
    people.run()
    people.check()
    people.delete_group()
    assert people.moved() == 0
    people.more()
    people.run()
    people.check()
    for offset in (10, 100_000):
        people.reset_group(offset)
        assert people.moved() == 2 * offset
        people.more()
        people.run()
        people.check()
    old = people.scenario.options["group.id"]
    people.scenario.options["group.id"] = f"{old}-new"
    read = len(people.scenario.rows)
    people.more()
    people.run()
    people.check()
    people.scenario.options["group.id"] = old
    assert people.moved() == read


@pytest.mark.parametrize("lost", [False, slow(True)])
def test_group_is_changed_while_a_decided_batch_is_pending(people, lost):
    """The old one is where that batch has put it. Where its move was lost, it stays behind."""
    kill_at(people.scenario, "decided", read_topic=people.read_topic)
    if lost:
        end_open_transactions(people.scenario, commit_partitions={0, 1, 2, 3})
    old = people.scenario.options["group.id"]
    people.scenario.options["group.id"] = f"{old}-new"
    people.run()
    people.check()
    people.scenario.options["group.id"] = old
    assert people.moved() == (0 if lost else 200)


@pytest.mark.slow
@pytest.mark.parametrize("lost", [False, True])
def test_group_is_deleted_while_a_decided_batch_is_pending(people, lost):
    people.run()
    people.more()
    kill_at(people.scenario, "decided", read_topic=people.read_topic)
    if lost:
        end_open_transactions(people.scenario, commit_partitions={0, 1, 2, 3})
    people.delete_group()
    people.run()
    people.check()


@pytest.mark.slow
def test_group_is_reset_while_a_decided_batch_is_pending(people):
    """Kafka takes what a person says for newer; the next batch moves it."""
    kill_at(people.scenario, "decided", read_topic=people.read_topic, offsets_per_batch=600)
    people.reset_group(3)
    people.run()
    people.scenario.check()
    assert people.moved() == 6
    people.more()
    people.run()
    people.check()


@pytest.mark.slow
def test_option_group_is_removed_while_its_move_is_lost(people):
    kill_at(people.scenario, "decided", read_topic=people.read_topic)
    end_open_transactions(people.scenario, commit_partitions={0, 1, 2, 3})
    group = people.scenario.options.pop("group.id")
    people.run()
    people.scenario.check()
    people.scenario.options["group.id"] = group
    people.more()
    people.run()
    people.check()


@pytest.mark.slow
def test_two_queries_that_move_one_group(people, topic):
    """Nobody can tell: the rows of each are right, and the group is where the last one put it."""
    people.run()
    people.check()
    people.scenario.checkpoint = people.scenario.checkpoint.with_name("other")
    people.scenario.topic = topic(3)
    with people.driver("completed") as driver:
        driver.wait_for("completed")
        assert people.moved() == 200
        driver.go("completed")
        driver.finish()
    people.check()


@pytest.fixture(scope="module")
def forgetful(tmp_path_factory):
    """A broker that forgets an id four seconds after its last transaction."""
    properties = {
        "transactional.id.expiration.ms": "4000",
        "transaction.remove.expired.transaction.cleanup.interval.ms": "1000",
    }
    folder = tmp_path_factory.mktemp("forgetful")
    with EmbeddedKafka(folder, properties=properties, jvm_flags=SMALL_JVM) as cluster:
        yield cluster


@pytest.fixture
def forgotten(tmp_path, drivers, forgetful, topic):
    return Scenario(tmp_path, drivers, forgetful.bootstrap_servers, topic(3, on=forgetful))


def wait_until_forgotten(scenario):
    """No id of the query is known to Kafka."""
    query_id = (scenario.checkpoint / "metadata").read_text().split('"')[3]
    deadline = time.monotonic() + 90
    admin = KafkaAdminClient(bootstrap_servers=scenario.bootstrap_servers)
    try:
        while any(query_id in name for name in known_ids(admin)):
            assert time.monotonic() < deadline, "Kafka did not forget"
            time.sleep(0.5)
    finally:
        admin.close()


def known_ids(admin):
    found = admin.list_transactions().values()
    return [listing.transactional_id for of_broker in found for listing in of_broker]


@pytest.mark.slow
@pytest.mark.parametrize("committed", [(0, 1, 2, 3), (0, 2), ()])
def test_query_whose_ids_are_forgotten_while_it_is_stopped(forgotten, committed):
    """First with nothing pending, then with a decided batch of which so much was committed."""
    forgotten.add_files(1)
    forgotten.run()
    wait_until_forgotten(forgotten)
    forgotten.add_files(1)
    forgotten.run()
    forgotten.check()
    forgotten.add_files(2)
    kill_at(forgotten, "decided")
    end_open_transactions(forgotten, commit_partitions=committed)
    wait_until_forgotten(forgotten)
    forgotten.run()
    forgotten.check()
