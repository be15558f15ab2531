"""The judge of the endurance run finds what grows, and is not taken in by a moment."""

from dataclasses import replace

import pytest

from benchmarks.endurance import Look, Use, grown

STEADY = Use(rss_mb=240, files=20, threads=60)
LARGE = Use(rss_mb=480, files=400, threads=600)  # beside it a leak of another must not be lost


def looks(worker):
    """Twenty looks; `worker` gives what the worker holds at each."""
    return [
        Look(
            batch=n, seconds=n, driver=STEADY, jvm=STEADY, workers={"w 1": LARGE, "w 2": worker(n)}
        )
        for n in range(20)
    ]


def test_steady_use_and_moments_of_maintenance_are_no_growth():
    def with_moments(n):
        return Use(rss_mb=240 + n % 3, files=300 if n in (3, 19) else 20, threads=50 + n % 15)

    assert grown(looks(with_moments)) == []


def test_run_whose_workers_were_all_replaced_proves_nothing():
    replaced = [
        replace(one, workers={f"w {n}": STEADY}) for n, one in enumerate(looks(lambda _: STEADY))
    ]
    assert grown(replaced) == ["no worker stayed"]


def test_workers_that_become_more_are_growth():
    more = [
        replace(one, workers={f"w {i}": STEADY for i in range(n + 1)})
        for n, one in enumerate(looks(lambda _: STEADY))
    ]
    assert grown(more) == ["workers: 1 to 20"]


@pytest.mark.parametrize(
    ("figure", "leak", "told"),
    [("rss_mb", 4, "memory"), ("files", 1, "files"), ("threads", 1, "th")],
)
def test_slow_leak_is_growth(figure, leak, told):
    found = grown(
        looks(lambda n: Use(**{"rss_mb": 240, "files": 20, "threads": 60, figure: 60 + leak * n}))
    )
    assert len(found) == 1
    assert told in found[0]
