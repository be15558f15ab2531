"""The judge of the simulation, on logs that are written by hand: it must see what is wrong."""

import pytest

from tests.simulation.broker import Broker
from tests.simulation.driver import TOPICS, workload
from tests.simulation.oracle import check_no_wrong_row

WORKLOAD = workload((3, 1), (1, 1))
ALL = len(WORKLOAD.batches)
PLACE = ("out", 0)


def log_of(*transactions, committed=True):
    """A broker on which these transactions ended one after the other, in one partition."""
    broker = Broker(TOPICS)
    add(broker, *transactions, committed=committed)
    return broker


def add(broker, *transactions, committed):
    for values in transactions:
        identity = broker.init_producer_id(f"id-{len(broker.transactions)}", 60_000)
        broker.add_partition(identity, PLACE)
        for value in values:
            broker.produce(identity, PLACE, value.encode())
        broker.end_txn(identity, committed=committed)


def test_rows_in_their_order_are_right():
    broker = log_of(["b0p0r0", "b0p0r1", "b0p0r2"], ["b0p1r0"], ["b1p0r0"], ["b1p1r0"])
    check_no_wrong_row(broker, WORKLOAD, ALL)


def test_tasks_of_one_batch_have_no_order():
    broker = log_of(["b0p1r0"], ["b0p0r0", "b0p0r1", "b0p0r2"], ["b1p1r0"], ["b1p0r0"])
    check_no_wrong_row(broker, WORKLOAD, ALL)


def test_rows_of_a_task_in_another_order_are_seen():
    broker = log_of(["b0p0r2", "b0p0r1", "b0p0r0"], ["b0p1r0"])
    with pytest.raises(AssertionError, match=r"rows of \(0, 0\) in another order"):
        check_no_wrong_row(broker, WORKLOAD, 1)


@pytest.mark.parametrize("late", ["b0p0r2", "b0p1r0"], ids=["of the same task", "of another"])
def test_batch_before_an_older_one_is_seen(late):
    """As where a lost partition is written again when the next batch is there already."""
    rest = [value for value in ("b0p0r0", "b0p0r1", "b0p0r2", "b0p1r0") if value != late]
    broker = log_of(rest, ["b1p0r0"], [late], ["b1p1r0"])
    with pytest.raises(AssertionError, match="a batch before an older one"):
        check_no_wrong_row(broker, WORKLOAD, ALL)


def test_aborted_rows_have_no_order():
    broker = log_of(["b1p0r0"], ["b0p0r1", "b0p0r0"], committed=False)
    add(broker, ["b0p0r0", "b0p0r1", "b0p0r2"], ["b0p1r0"], committed=True)
    check_no_wrong_row(broker, WORKLOAD, 1)


def test_lost_and_doubled_rows_are_seen():
    with pytest.raises(AssertionError, match="visible twice"):
        check_no_wrong_row(log_of(["b0p1r0"], ["b0p1r0"]), WORKLOAD, 0)
    with pytest.raises(AssertionError, match="not visible"):
        check_no_wrong_row(log_of(["b0p1r0"]), WORKLOAD, 1)
