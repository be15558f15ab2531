"""One option string in, one value out; a value that is wrong is named with what is accepted."""

import difflib
import re
from collections.abc import Iterable, Mapping
from typing import Final

from spark_eos._kafka.config.client_config import ClientConfig
from spark_eos.errors import OptionError

KAFKA: Final = "kafka."
DEFAULT_API_TIMEOUT_MS: Final = 60_000

# Spark puts these beside the user's own.
_SPARKS_OWN: Final = ("queryname",)
_WHOLE = re.compile(r"-?[0-9]{1,19}")
_LARGEST: Final = {"offsets": 2**63 - 1, "milliseconds since 1970": 2**63 - 1}
_INT: Final = 2**31 - 1


def lower_case(options: Mapping[str, str]) -> dict[str, str]:
    """Spark's option maps do not know case."""
    return {name.lower(): value for name, value in options.items()}


def refuse_unknown(given: Mapping[str, str], accepted: Iterable[str]) -> None:
    """Raise for a name that is not accepted, with the one that may have been meant."""
    known = {name.lower(): name for name in accepted}
    for name in given:
        if name in known or name in _SPARKS_OWN or name.startswith(KAFKA):
            continue
        if f"{KAFKA}{name}" in ("kafka.bootstrap.servers", "kafka.transaction.timeout.ms"):
            raise OptionError(f"unknown option '{name}': did you mean '{KAFKA}{name}'?")
        close = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean '{known[close[0]]}'? " if close else ""
        raise OptionError(
            f"unknown option '{name}': {hint}accepted are {', '.join(known.values())} and kafka.*"
        )


def client_config(
    given: Mapping[str, str], reserved: Mapping[str, str], own: Iterable[str] = ()
) -> ClientConfig:
    """The `kafka.*` options but `own`, which are not the client's; raise for a reserved one."""
    properties = {
        name.removeprefix(KAFKA): value
        for name, value in given.items()
        if name.startswith(KAFKA) and name not in own
    }
    for name, reason in reserved.items():
        if name in properties:
            raise OptionError(f"option kafka.{name} cannot be set: {reason}")
    if not properties.get("bootstrap.servers", "").strip():
        raise OptionError("option kafka.bootstrap.servers is missing: host:port[,host:port...]")
    return ClientConfig.from_options(properties)


def text(given: Mapping[str, str], name: str) -> str | None:
    """The option as given; None where it is not given."""
    value = given.get(name.lower())
    if value is not None and not value.strip():
        raise OptionError(f"option {name} is empty")
    return value


def required(given: Mapping[str, str], name: str, what: str) -> str:
    """The option as given; raise where it is not given."""
    value = text(given, name)
    if value is None:
        raise OptionError(
            f"option {name} is missing: set {what} with .option('{name}', ...); a location that is"
            " set for the session only does not reach the sink"
        )
    return value


def number(
    given: Mapping[str, str], name: str, *, least: int = 1, unit: str = "offsets"
) -> int | None:
    """A whole number of `unit`; None where the option is not given."""
    value = given.get(name.lower())
    if value is None:
        return None
    largest = _LARGEST.get(unit, _INT)
    parsed = int(value) if _WHOLE.fullmatch(value) else least - 1
    if not least <= parsed <= largest:
        raise OptionError(f"{name} '{value}': {least} to {largest} {unit} are accepted")
    return parsed


def milliseconds(given: Mapping[str, str], name: str, default: int, *, least: int) -> int:
    """A number of milliseconds."""
    parsed = number(given, name, least=least, unit="milliseconds")
    return default if parsed is None else parsed


def boolean(given: Mapping[str, str], name: str, *, default: bool) -> bool:
    """True or false, in any case."""
    value = given.get(name.lower(), str(default)).lower()
    if value not in ("true", "false"):
        raise OptionError(f"{name} '{value}': true or false is accepted")
    return value == "true"
