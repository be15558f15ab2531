"""`df.write`: all or nothing, and once for each version of an application."""

import pytest
from deltalake import DeltaTable

from tests.chaos.oracle import assert_exactly_once, committed_values


@pytest.fixture
def write(spark, kafka, topic, tmp_path):
    """Writes numbers from several partitions; `write.topic` and `write.log` are where."""
    name = topic(2)

    def run(first, last, column="string(id) AS value", **options):
        given = {"kafka.bootstrap.servers": kafka.bootstrap_servers, "topic": name}
        given |= {"apiTimeoutMs": "20000"} | options
        frame = spark.range(first, last, numPartitions=3).selectExpr(column)
        writer = frame.write.format("txnkafka").mode(given.pop("mode", "append"))
        writer.options(**{k: v for k, v in given.items() if v is not None}).save()

    run.topic, run.servers, run.log = name, kafka.bootstrap_servers, str(tmp_path / "log")
    return run


def numbers(*ranges):
    return [str(number) for first, last in ranges for number in range(first, last)]


def test_all_rows_of_all_partitions_are_there(write):
    write(0, 100)
    assert_exactly_once(write.servers, write.topic, numbers((0, 100)))


@pytest.mark.parametrize("logged", [False, True])
def test_nothing_is_there_when_a_task_fails(write, logged):
    """The last task fails; the others had prepared their rows, or were writing them."""
    failing = "IF(id = 299, raise_error('bad row'), string(id)) AS value"
    job = (
        {"transactionLog": write.log, "txnAppId": write.topic, "txnVersion": "1"} if logged else {}
    )
    with pytest.raises(Exception, match="bad row"):
        write(0, 300, failing, **job)
    assert_exactly_once(write.servers, write.topic, [])
    write(0, 300, **job)
    assert_exactly_once(write.servers, write.topic, numbers((0, 300)))


def test_version_of_an_application_is_written_once(write):
    job = {"txnAppId": write.topic, "transactionLog": write.log}
    write(0, 30, txnVersion="1", **job)
    write(0, 30, txnVersion="1", **job)
    write(30, 50, txnVersion="2", **job)
    write(30, 50, txnVersion="2", **job)
    write(0, 30, txnVersion="1", **job)
    write(100, 110, txnVersion="1", txnAppId=f"other-{write.topic}", transactionLog=write.log)
    assert_exactly_once(write.servers, write.topic, numbers((0, 50), (100, 110)))
    rows = DeltaTable(write.log).to_pyarrow_table().to_pylist()
    ends = {r["batch_id"] for r in rows if r["transaction_status"] == "CompleteCommit"}
    assert ends == {1, 2}  # logged at once: there may be no next write


def test_version_that_was_left_out_is_not_taken_for_written(write):
    job = {"txnAppId": write.topic, "transactionLog": write.log}
    write(0, 10, txnVersion="5", **job)
    with pytest.raises(Exception, match="no record of it"):
        write(10, 20, txnVersion="4", **job)
    assert_exactly_once(write.servers, write.topic, numbers((0, 10)))


def test_version_that_comes_back_with_other_rows_is_refused(write):
    job = {"txnAppId": write.topic, "transactionLog": write.log}
    write(0, 30, txnVersion="1", **job)
    write(30, 50, txnVersion="2", **job)
    for version in ("1", "2"):
        with pytest.raises(
            Exception, match=f"version {version} of txnAppId '{write.topic}'.*other rows"
        ):
            write(100, 130, txnVersion=version, **job)
    assert_exactly_once(write.servers, write.topic, numbers((0, 50)))


def test_at_least_once_writes_a_batch_that_runs_again_twice(sink, topic):
    """And exactly once does not: the same stream, the same deleted commit."""
    names = {"exactly_once": topic(1), "at_least_once": topic(1)}
    sink.add([("a",), ("b",)], "value string")
    seen = {}
    for guarantee, name in names.items():
        sink.checkpoint = sink.checkpoint.with_name(guarantee)
        for _ in range(2):
            sink.write("value string", topic=name, deliveryGuarantee=guarantee).exception()
            for file in (sink.checkpoint / "commits").glob("*0*"):
                file.unlink()
        found = committed_values(sink.bootstrap_servers, name).values()
        seen[guarantee] = sorted(found)
    assert seen == {"exactly_once": ["a", "b"], "at_least_once": ["a", "a", "b", "b"]}
    assert not (sink.checkpoint / "transaction_state").exists()


def test_at_least_once_batch_write(write):
    write(0, 20, deliveryGuarantee="at_least_once")
    assert_exactly_once(write.servers, write.topic, numbers((0, 20)))


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"mode": "overwrite"}, "save mode 'overwrite' is not possible"),
        ({"txnAppId": "a", "txnVersion": "1"}, "option transactionLog is missing"),
        ({"transactionLog": "/nowhere"}, "option txnAppId is missing"),
        ({"topic": "nowhere"}, "topic 'nowhere' does not exist"),
        ({"checkpointLocation": "/c"}, "option checkpointLocation is for streaming writes only"),
        ({"deliveryGuarantee": "maybe"}, "accepted values are exactly_once, at_least_once"),
        ({"deliveryGuarantee": "at_least_once", "txnAppId": "a", "txnVersion": "1"}, "no meaning"),
    ],
)
def test_mistake_is_told_before_a_row_is_written(write, options, text):
    with pytest.raises(Exception, match=text):
        write(0, 10, **options)
    assert_exactly_once(write.servers, write.topic, [])
