"""The main job: routed, dead letters beside good rows, stopped by SIGTERM, once."""

import json
from collections import Counter

from confluent_kafka import Consumer, TopicPartition


def orders(numbers):
    for number in numbers:
        country = "CH" if number % 3 == 0 else "FR"
        yield str(number), json.dumps({"order": number, "country": country, "price": 10.0})


BAD = [
    ("a", b"no json", "the value is no JSON of the schema"),
    ("b", b'{"order": 1', "the value is no JSON of the schema"),
    ("c", b'{"order": "x", "price": 1}', "the value is no JSON of the schema"),
    ("d", b"[1]", "the value is no JSON of the schema"),
    ("e", b"\xff\xfe", "the value is no JSON of the schema"),
    ("f", b"", "the value is empty"),
    ("g", b'{"order": 7, "price": -1}', "the row does not meet valid_when"),
    ("h", b'{"price": 1}', "the row does not meet valid_when"),
]


def test_rows_are_routed_and_bad_ones_put_aside(jobs, topic):
    source, main, swiss, dead = topic(2), topic(2), topic(1), topic(1)
    file = jobs.file(
        "consume_transform_produce",
        **{"orders.dead": dead, "subscribe: orders": f"subscribe: {source}"},
        **{"invoices.ch": swiss, "'invoices'": f"'{main}'"},
    )
    jobs.produce(source, orders(range(300)))
    jobs.produce(source, [(key, value) for key, value, _ in BAD] + [("t", None)])
    run = jobs.submit("consume_transform_produce", file)
    run.wait_for(lambda: len(jobs.records(dead)) == len(BAD))
    jobs.produce(source, orders(range(300, 600)))
    run.wait_for(lambda: len(jobs.records(main)) == 400)
    run.terminate()
    assert run.wait() == 0, run.text()
    assert "ended with exit code 0" in run.text()

    jobs.produce(source, orders(range(600, 900)))
    jobs.run("consume_transform_produce", jobs.until_drained(file))

    for name, wanted in ((main, [1, 2]), (swiss, [0])):
        found = Counter(json.loads(value)["order"] for _, value, _ in jobs.records(name))
        assert found == Counter(number for number in range(900) if number % 3 in wanted)
    letters = {key.decode(): (value, dict(headers)) for key, value, headers in jobs.records(dead)}
    assert len(jobs.records(dead)) == len(letters) == len(BAD)
    for key, value, reason in BAD:
        found, headers = letters[key]
        assert (found or b"", headers["__error.reason"].decode()) == (value, reason)
        assert headers["__error.topic"].decode() == source
    assert_group_is_at_the_end(jobs.bootstrap_servers, source)


def assert_group_is_at_the_end(bootstrap_servers, source):
    consumer = Consumer({"bootstrap.servers": bootstrap_servers, "group.id": "invoices"})
    try:
        places = [TopicPartition(source, partition) for partition in (0, 1)]
        for place in consumer.committed(places, timeout=20):
            assert place.offset == consumer.get_watermark_offsets(place, timeout=20)[1]
    finally:
        consumer.close()
