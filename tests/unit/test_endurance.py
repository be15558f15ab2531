"""The judge of the endurance run finds what grows, and is not taken in by a moment."""

import pytest

from benchmarks.endurance import Look, Use, grown

STEADY = Use(rss_mb=240, files=20, threads=60)


def looks(worker):
    """Twenty looks; `worker` gives what the worker holds at each."""
    return [
        Look(batch=n, seconds=n, driver=STEADY, jvm=STEADY, worker=worker(n), workers=8)
        for n in range(20)
    ]


def test_steady_use_and_moments_of_maintenance_are_no_growth():
    def with_moments(n):
        return Use(rss_mb=240 + n % 3, files=300 if n in (3, 19) else 20, threads=50 + n % 15)

    assert grown(looks(with_moments)) == []


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
