"""Values for tests of the options."""

from collections.abc import Callable

import pytest

from spark_eos.errors import OptionError

SERVERS = {"kafka.bootstrap.servers": "127.0.0.1:9092"}
READ = SERVERS | {"subscribe": "orders"}


def refusal(call: Callable[..., object], *arguments: object) -> str:
    """The text of the one error: not the second of a chain that the user would see too."""
    with pytest.raises(OptionError) as caught:
        call(*arguments)
    error = caught.value
    assert error.__cause__ is None
    assert error.__context__ is None or error.__suppress_context__
    return str(error)
