"""Every process. What an option is, and how the options of a query are read.

The tables of options are in `read.py` and `write.py`; the tables in the docs come from them. All
mistakes are raised together, before a row is read or written. No text shows the value of an option
that is in no table, because the value may be a secret.
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
_SPARKS_OWN: Final = ("queryname",)  # Spark adds these to the user's options


class Where(Flag):
    """The kind of query that an option is for."""

    STREAM = auto()
    BATCH = auto()
    BOTH = STREAM | BATCH

    def __str__(self) -> str:
        return {Where.STREAM: "streaming", Where.BATCH: "batch"}.get(self, "all")


@dataclass(frozen=True, slots=True, kw_only=True)
class Option(Generic[T]):
    """One option. `parse` raises a ValueError that says what is accepted; no text means empty."""

    name: str
    parse: Callable[[str], T]
    default: T
    doc: str
    where: Where = Where.BOTH
    alias: str | None = None
    is_ignored_elsewhere: bool = False  # if False, the option is a mistake outside of `where`
    shown_default: str | None = None  # for the docs, if the default is not a plain value

    @property
    def names(self) -> list[str]:
        """The names in lower case, because Spark's option maps ignore case."""
        return [name.lower() for name in (self.name, self.alias) if name is not None]


SERVERS: Final = Option(
    name="kafka.bootstrap.servers",
    parse=str,  # the clients' configuration checks it
    default="",
    shown_default="required",
    doc="The brokers: `host:port[,host:port...]`.",
)


def table_of(module: Mapping[str, Any]) -> tuple[Option[Any], ...]:
    """The options that a module defines, in its order. The servers come first."""
    return (SERVERS, *(value for value in module.values() if isinstance(value, Option)))


class Given:
    """The parsed options of one query, and their mistakes."""

    def __init__(
        self, options: Mapping[str, str], table: Sequence[Option[Any]], where: Where, kind: str
    ) -> None:
        self.mistakes: list[Mistake] = []
        self._given = {name.lower(): value for name, value in options.items()}
        self._values: dict[str, Any] = {}
        self._wrong: set[str] = set()
        self._known = {name for option in table for name in option.names}
        for option in table:
            if option in self:
                self._take(option, where, kind)
        self._refuse_unknown([option for option in table if option.where & where])

    def __contains__(self, option: Option[Any]) -> bool:
        return any(name in self._given for name in option.names)

    def __getitem__(self, option: Option[T]) -> T:
        """The value; the default if the option is not given or is wrong."""
        return cast("T", self._values.get(option.name, option.default))

    def are_right(self, *options: Option[Any]) -> bool:
        """Whether no mistake about these options is known."""
        return not any(option.name in self._wrong for option in options)

    def wrong(self, option: Option[Any], text: str) -> None:
        """Note a mistake about this option."""
        self._wrong.add(option.name)
        self.mistakes.append(Mistake(option.name, text))

    def missing(self, option: Option[Any], what: str) -> None:
        """Note that the option is required."""
        self.wrong(option, f"option {option.name} is missing: {what}")

    def client(self, reserved: Mapping[str, str]) -> ClientConfig:
        """The clients' settings: the `kafka.*` options that are in no table. `reserved` has the
        reason for each setting that is refused.
        """
        properties = {
            name.removeprefix(KAFKA): value
            for name, value in self._given.items()
            if name.startswith(KAFKA) and name not in self._known - {SERVERS.name}
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
        """Raise one error for all mistakes, if there are any."""
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
            names = f"{option.name} and {option.alias}"
            self.wrong(option, f"{names} have different values: give one of them")
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
        names = {option.name.lower(): option.name for option in accepted}
        for name in self._given:
            if name in self._known or name in _SPARKS_OWN or name.startswith(KAFKA):
                continue
            close = difflib.get_close_matches(name, names, n=1)
            meant = [names[found] for found in (f"{KAFKA}{name}", *close) if found in names]
            hint = f"did you mean '{meant[0]}'? " if meant else ""
            shown = ", ".join(n for n in names.values() if not n.startswith(KAFKA))
            text = f"unknown option '{name}': {hint}accepted options are {shown} and {KAFKA}*"
            self.mistakes.append(Mistake(name, text))
