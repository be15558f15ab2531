"""A stateful query that is killed at random: what it wrote equals the result of a batch."""

import json
import random
import time
from collections import Counter

import pytest

MINUTE = 60_000
START = 1_700_000_040_000  # a whole minute
KEYS = ("a", "b", "c", "d", "e")


def events(count, chance):
    """Some thousand a minute, a little out of order, as (key, value, time)."""
    for number in range(count):
        at = START + number * 20 + chance.randrange(-5_000, 5_000)
        yield chance.choice(KEYS), str(number), at


def counted(records):
    """The independent result: windows by plain arithmetic."""
    return Counter((key, at // MINUTE * MINUTE) for key, _, at in records)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("kills", [2, 10])
def test_counts_equal_those_of_a_batch(jobs, topic, kills):
    check_counts(jobs, topic, kills)


def check_counts(jobs, topic, kills):
    """The driver is killed so often."""
    chance = random.Random(kills)
    source, target = topic(3), topic(2)
    file = jobs.file(
        "windowed_counts",
        **{"subscribe: orders": f"subscribe: {source}", "topic: order-counts": f"topic: {target}"},
    )
    records = list(events(60_000, chance))
    jobs.produce(source, records)
    jobs.until_drained(file)
    for _ in range(kills):
        run = jobs.submit("windowed_counts", file, MAX_OFFSETS="1500")
        run.wait_for(lambda run=run: "batch " in run.text() or run.process.poll() is not None)
        time.sleep(chance.uniform(0, 1.5))
        run.kill()
        run.log.write_text("")
    jobs.run("windowed_counts", file, MAX_OFFSETS="1500")
    # The last window that counts is closed by a record far behind it. Not before all is read: it
    # would be read early, if it is alone in its partition, and all others would be late.
    jobs.produce(source, [("close", "x", START + 10 * 60 * MINUTE)])
    jobs.run("windowed_counts", file)
    found = Counter()
    for key, value, _ in jobs.records(target):
        row = json.loads(value)
        assert key.decode() == row["key"]
        window = (row["key"], epoch_ms(row["start"]))
        assert window not in found, f"{window} was written twice"
        found[window] = row["count"]
    assert found == counted(records)


def epoch_ms(text):
    from datetime import datetime

    return int(datetime.fromisoformat(text).timestamp() * 1000)
