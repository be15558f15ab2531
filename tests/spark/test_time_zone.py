"""Times are instants: what the session shows them in makes no difference to what is in Kafka."""

import pytest

from tests.spark.test_source_filters import PUSHDOWN

ZONE = "spark.sql.session.timeZone"
# Around the hour that a clock in Berlin shows twice, half an hour apart.
FIRST_MS = 1_729_987_200_123
TIMES_MS = [FIRST_MS + 1_800_000 * step for step in range(8)]


@pytest.fixture
def conf(spark):
    """Set settings of the session for one test."""
    before = {name: spark.conf.get(name, None) for name in (ZONE, PUSHDOWN)}
    yield spark.conf.set
    for name, value in before.items():
        spark.conf.unset(name) if value is None else spark.conf.set(name, value)


@pytest.mark.parametrize("zone", ["Europe/Berlin", "GMT+2"])
def test_times_are_written_and_read_as_they_are(spark, kafka, topic, conf, zone):
    conf(ZONE, zone)
    conf(PUSHDOWN, "true")
    name, given = topic(1), {"kafka.bootstrap.servers": kafka.bootstrap_servers}
    rows = spark.createDataFrame([(ms,) for ms in TIMES_MS], "ms long").coalesce(1)
    rows = rows.selectExpr("string(ms) AS value", "timestamp_millis(ms) AS timestamp")
    rows.write.format("txnkafka").mode("append").options(**given, topic=name).save()
    read = spark.read.format("txnkafka").options(**given, subscribe=name).load()

    def found(frame):
        columns = frame.selectExpr("string(value)", "unix_millis(timestamp) AS ms")
        return [(row.value, row.ms) for row in columns.orderBy("offset").collect()]

    assert found(read) == [(str(ms), ms) for ms in TIMES_MS]
    later = read.where(f"timestamp >= timestamp_millis({TIMES_MS[4]})")
    assert found(later) == [(str(ms), ms) for ms in TIMES_MS[4:]]
