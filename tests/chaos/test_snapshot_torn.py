"""A micro-batch that is committed in part, because its driver died: who sees what of it."""

import pytest

from spark_eos._options import batch_options
from spark_eos._session import read_session_of
from spark_eos._source.batch_offsets import plan_ranges
from spark_eos._source.filters import Pushed
from spark_eos._source.read import read_range
from spark_eos._source.schema import source_schema
from tests.chaos.oracle import assert_none_open
from tests.chaos.transactions import end_open_transactions


def rows(scenario, **options):
    """What a batch read returns, without a Spark session."""
    from pyspark.sql.pandas.types import to_arrow_schema

    given = {"kafka.bootstrap.servers": scenario.bootstrap_servers, "subscribe": scenario.topic}
    session = read_session_of(batch_options(given | options))
    schema = to_arrow_schema(source_schema(False), timezone="UTC")
    return [
        value.decode()
        for planned in plan_ranges(session, Pushed())
        for batch in read_range(session, planned.range, schema, planned.records)
        for value in batch.column("value").to_pylist()
    ]


@pytest.mark.slow
def test_torn_batch_is_seen_in_part_at_read_committed_and_not_at_all_at_snapshot(scenario):
    log = {"isolation.level": "snapshot", "transactionLog": None}
    log["transactionLog"] = str(scenario.checkpoint / "transaction_state")
    scenario.add_files(1)
    scenario.run()
    first = sorted(scenario.rows)
    scenario.add_files(1)
    with scenario.driver("decided") as driver:
        driver.wait_for("decided")
        assert sorted(rows(scenario, **log)) == first
        driver.kill()
    end_open_transactions(scenario, commit_partitions={0, 2})
    part = rows(scenario)
    assert len(first) < len(part) < len(scenario.rows)
    assert sorted(rows(scenario, **log)) == first
    scenario.run()
    assert_none_open(scenario.bootstrap_servers, scenario.topic)
    assert sorted(rows(scenario, **log)) == sorted(scenario.rows) == sorted(rows(scenario))
