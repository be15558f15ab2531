"""What Kafka takes for the name of a topic."""

import pytest

from spark_eos._protocol.offsets.topic_name import is_topic_name


@pytest.mark.parametrize("name", ["a", "Orders.v1_x-2", "...", ".a", "-", "_", "0", "x" * 249])
def test_name(name):
    assert is_topic_name(name)


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", " ", "a b", " a", "a\n", "a/b", "a,b", "a:b", "a*", "ü", "٣", "x" * 250, "\0"],
)
def test_text_that_is_no_name(name):
    assert not is_topic_name(name)
