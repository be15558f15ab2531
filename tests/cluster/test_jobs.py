"""Every job on a cluster of two workers, and its executors are killed while it runs.

The tests are those of `tests/jobs`: what a job gives does not depend on where it runs.
"""

from contextlib import ExitStack

import pytest

from tests.cluster.application import OnCluster
from tests.cluster.kills import ExecutorKills
from tests.jobs.submitted import Jobs
from tests.jobs.test_consume_transform_produce import (
    test_rows_are_routed_and_bad_ones_put_aside as test_consume_transform_produce,
)
from tests.jobs.test_outside_world import (
    invoices,
    test_kafka_to_delta,
    test_kafka_to_delta_keeps_the_newest_of_a_key,
    test_outbox_to_kafka,
)
from tests.jobs.test_replay import test_replay
from tests.jobs.test_windowed_counts import check_counts

__all__ = [
    "invoices",
    "test_consume_transform_produce",
    "test_kafka_to_delta",
    "test_kafka_to_delta_keeps_the_newest_of_a_key",
    "test_outbox_to_kafka",
    "test_replay",
]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
KILLS = 3


@pytest.fixture
def jobs(request, kafka, standalone, archive, tmp_path):
    with ExitStack() as at_the_end:
        place = OnCluster(tmp_path, standalone, archive)
        at_the_end.callback(place.close)
        found = Jobs(kafka, tmp_path, place)
        at_the_end.callback(found.close)
        kills = ExecutorKills(standalone, KILLS, seed=request.node.name)
        kills.start()
        at_the_end.callback(kills.end)
        yield found
        assert kills.killed > 0, "no executor was killed: the test shows nothing"


def test_windowed_counts(jobs, topic):
    """Here the driver is killed, too."""
    check_counts(jobs, topic, kills=2)
