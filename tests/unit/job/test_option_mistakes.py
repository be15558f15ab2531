"""Every mistake in a set of options, and no mistake that is only a consequence of another."""

import pytest

from spark_eos._options import batch_write_options, sink_options, stream_options
from spark_eos.job._option_mistakes import option_mistakes

SOURCE = {"kafka.bootstrap.servers": "localhost:9092", "subscribe": "orders"}


def named(options: dict[str, str], check: object) -> list[str | None]:
    return [name for name, _ in option_mistakes(options, check)]  # type: ignore[arg-type]


def test_good_options_have_none() -> None:
    assert named(SOURCE, stream_options) == []


def test_each_wrong_one_is_named() -> None:
    wrong = {"startingOffsets": "x", "includeHeaders": "maybe", "topc": "y"}
    assert sorted(map(str, named(SOURCE | wrong, stream_options))) == sorted(wrong)


def test_wrong_subscription_is_not_told_as_a_missing_one_too() -> None:
    assert named(SOURCE | {"subscribe": "a b"}, stream_options) == ["subscribe"]


def test_missing_ones_do_not_hide_the_others() -> None:
    found = list(option_mistakes({"topic": "a b", "group.id": " "}, sink_options))
    assert [name for name, _ in found] == [None, "topic", None, "group.id"]
    assert "kafka.bootstrap.servers is missing" in found[0][1]
    assert "checkpointLocation is missing" in found[2][1]


@pytest.mark.parametrize("given", [{"txnAppId": "a"}, {"txnVersion": "1"}])
def test_what_belongs_together(given: dict[str, str]) -> None:
    options = {"kafka.bootstrap.servers": "localhost:9092", "topic": "t"} | given
    found = list(option_mistakes(options, batch_write_options))
    assert any("belong together" in text for _, text in found)
