"""Every process. What an option is, and how the options of a user are read.

The tables of options are in `read.py` and `write.py`. A table gives the parser, the mistakes and
the tables in the docs. All mistakes are collected and raised together, before a row is read or
written. A value of a `kafka.*` option may be a secret and is never shown.
"""

import difflib
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Flag, auto
from typing import Any, Final, Generic, TypeVar, cast

from spark_eos._kafka.config.client_config import ClientConfig
from spark_eos.errors import Mistake, OptionError

T = TypeVar("T")

_LOG = logging.getLogger(__name__)

KAFKA: Final = "kafka."
# Spark puts these beside the user's own.
_SPARKS_OWN: Final = ("queryname",)


class Where(Flag):
    """For which kind of query an option is."""

    STREAM = auto()
    BATCH = auto()
    BOTH = STREAM | BATCH

    def __str__(self) -> str:
        return {Where.STREAM: "streaming", Where.BATCH: "batch"}.get(self, "all")


@dataclass(frozen=True, slots=True, kw_only=True)
class Option(Generic[T]):
    """One option. `parse` turns its text into a value, and raises ValueError with what is accepted.

    A ValueError without a text says that the option must not be empty.
    """

    name: str
    parse: Callable[[str], T]
    default: T
    doc: str
    where: Where = Where.BOTH
    alias: str | None = None
    is_ignored_elsewhere: bool = False  # else it is a mistake where it does not belong
    shown_default: str | None = None  # in the docs, where the default is no plain value

    @property
    def names(self) -> list[str]:
        """The names in lower case: Spark's option maps do not know case."""
        return [name.lower() for name in (self.name, self.alias) if name is not None]


SERVERS: Final = Option(
    name="kafka.bootstrap.servers",
    parse=str,  # the clients' configuration checks it
    default="",
    shown_default="required",
    doc="The brokers: `host:port[,host:port...]`.",
)


def table_of(module: Mapping[str, Any]) -> tuple[Option[Any], ...]:
    """The options that a module defines, in its order, after the one that every query has."""
    own = [value for value in module.values() if isinstance(value, Option)]
    return (SERVERS, *own)


class Given:
    """The options of one query, parsed as far as they are right. Mistakes are collected."""

    def __init__(
        self, options: Mapping[str, str], table: Sequence[Option[Any]], where: Where, kind: str
    ) -> None:
        self.mistakes: list[Mistake] = []
        self._given = {name.lower(): value for name, value in options.items()}
        self._values: dict[str, Any] = {}
        self._wrong: set[str] = set()
        self._table = table
        for option in table:
            if any(name in self._given for name in option.names):
                self._take(option, where, kind)
        self._refuse_unknown([option for option in table if option.where & where])

    def __contains__(self, option: Option[Any]) -> bool:
        return any(name in self._given for name in option.names)

    def __getitem__(self, option: Option[T]) -> T:
        """The value, or the default where the option is not given or wrong."""
        return cast("T", self._values.get(option.name, option.default))

    def are_right(self, *options: Option[Any]) -> bool:
        """Whether nothing is wrong with these options so far."""
        return not any(option.name in self._wrong for option in options)

    def wrong(self, option: Option[Any], text: str) -> None:
        """Note a mistake that is about this option."""
        self._wrong.add(option.name)
        self.mistakes.append(Mistake(option.name, text))

    def missing(self, option: Option[Any], what: str) -> None:
        """Note that the option has to be given."""
        self.wrong(option, f"option {option.name} is missing: {what}")

    def client(self, reserved: Mapping[str, str]) -> ClientConfig:
        """The settings of the Kafka clients: the `kafka.*` options that no table has. `reserved`
        says which of them cannot be set, and why.
        """
        own = {name for option in self._table for name in option.names} - {SERVERS.name}
        properties = {
            name.removeprefix(KAFKA): value
            for name, value in self._given.items()
            if name.startswith(KAFKA) and name not in own
        }
        for name in properties.keys() & reserved.keys():
            text = f"option {KAFKA}{name} cannot be set: {reserved[name]}"
            self.mistakes.append(Mistake(f"{KAFKA}{name}", text))
        allowed = {name: value for name, value in properties.items() if name not in reserved}
        try:
            return ClientConfig.from_options(allowed)
        except OptionError as error:
            self.mistakes += error.mistakes
            return ClientConfig(pairs=())

    def raise_mistakes(self) -> None:
        """Raise if there are any."""
        if self.mistakes:
            raise OptionError.of(self.mistakes)

    def _take(self, option: Option[Any], where: Where, kind: str) -> None:
        if not option.where & where:
            if not option.is_ignored_elsewhere:
                self.wrong(option, f"option {option.name} is for {option.where} {kind} only")
                return
            _LOG.warning("option %s has no effect on %s %s", option.name, where, kind)
        found = list(self._parsed(option))
        if any(value != found[0] for value in found):
            name, alias = option.name, option.alias
            self.wrong(option, f"{name} and {alias} do not say the same: give one")
        elif found:
            self._values[option.name] = found[0]

    def _parsed(self, option: Option[T]) -> Iterator[T]:
        for name in option.names:
            if name not in self._given:
                continue
            value = self._given[name]
            shown = option.name if name == option.name.lower() else option.alias
            try:
                yield option.parse(value)
            except ValueError as error:
                text = f"{shown} '{value}': {error}" if str(error) else f"option {shown} is empty"
                self.wrong(option, text)

    def _refuse_unknown(self, accepted: Sequence[Option[Any]]) -> None:
        known = {name for option in self._table for name in option.names}
        names = {option.name.lower(): option.name for option in accepted}
        for name in self._given:
            if name in known or name in _SPARKS_OWN or name.startswith(KAFKA):
                continue
            close = difflib.get_close_matches(name, names, n=1)
            meant = [names[found] for found in (f"{KAFKA}{name}", *close) if found in names]
            hint = f"did you mean '{meant[0]}'? " if meant else ""
            shown = ", ".join(n for n in names.values() if not n.startswith(KAFKA))
            text = f"unknown option '{name}': {hint}accepted are {shown} and {KAFKA}*"
            self.mistakes.append(Mistake(name, text))
