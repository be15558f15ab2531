"""A point in time, and waiting for it, on a clock that moves when somebody sleeps."""

from spark_eos._deadline import LAST_PAUSE_S, Backoff, Deadline


class Clock:
    def __init__(self):
        self.now = 10.0
        self.slept = []

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds
        self.slept.append(seconds)


def test_deadline_counts_down_and_stops_at_zero():
    clock = Clock()
    deadline = Deadline.after_ms(500, clock)
    assert deadline.remaining_ms == 500
    assert not deadline.passed
    clock.now = 10.6
    assert deadline.remaining_s == 0
    assert deadline.passed


def test_attempt_ends_with_its_deadline():
    deadline = Deadline.after_ms(500, Clock())
    assert deadline.at_most_s(0.25).remaining_ms == 250
    assert deadline.at_most_s(9.0).remaining_ms == 500


def test_pauses_grow_and_end_with_the_deadline():
    clock = Clock()
    backoff = Backoff(Deadline.after_ms(1_000, clock))
    while backoff.wait():
        pass
    assert clock.now == 11.0
    assert clock.slept[0] < clock.slept[-3] <= LAST_PAUSE_S
    assert not backoff.wait()
    assert clock.now == 11.0
