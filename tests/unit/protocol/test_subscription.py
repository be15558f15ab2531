"""A pattern is found anywhere in a name, and never in those of the brokers' own topics."""

import pytest

from spark_eos._protocol.offsets.subscription import Pattern


@pytest.mark.parametrize(
    ("regex", "topic", "expected"),
    [
        ("orders", "orders", True),
        ("orders", "orders-2", True),
        ("orders", "my-orders", True),
        ("^orders$", "my-orders", False),
        ("orders.*", "orders-2", True),
        ("a|b", "b", True),
        ("^(a|b)$", "ab", False),
        ("a|ab", "ab", True),
        ("Orders", "orders", False),
        ("(?i)Orders", "orders", True),
        (".*", "__consumer_offsets", False),
        (".*", "__transaction_state", False),
        (".*", "__share_group_state", False),
        ("__consumer_offsets", "__consumer_offsets", False),
        (".*", "__mine", True),
    ],
)
def test_match(regex, topic, expected):
    assert Pattern(regex).matches(topic) is expected
