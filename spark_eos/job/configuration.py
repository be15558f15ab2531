"""Driver. A job's file: from YAML to a checked model, or to every mistake with its line.

`${NAME}` and `${NAME:-default}` come from the environment, so that no secret has to be in a file.
The section `kafka` has the client settings that all sources and sinks share.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

import yaml
from pydantic import BaseModel, ValidationError
from pyspark.errors import PySparkException

from spark_eos.errors import OptionError

Model = TypeVar("Model", bound=BaseModel)

_TEXTS = {"extra_forbidden": "is an unknown key", "missing": "is missing"}
_YAML: Final = "tag:yaml.org,2002:"
_WRITTEN: Final = ("str", "bool", "int", "float", "timestamp")  # read as texts
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")


@dataclass(frozen=True, slots=True, order=True)
class FileMistake:
    """One mistake in a file, and its place."""

    line: int
    where: str
    text: str


class ConfigurationError(OptionError):
    """A job's file cannot be used. The text has a line for each mistake."""

    def __init__(self, path: Path, mistakes: list[FileMistake]) -> None:
        found = sorted(set(mistakes))
        lines = (f"{path}:{m.line}: {m.where}{': ' if m.where else ''}{m.text}" for m in found)
        super().__init__("\n".join(lines))


class Key(str):
    """A key of the file, with its line."""

    __slots__ = ("line",)

    line: int


@dataclass(frozen=True, slots=True)
class Configuration(Generic[Model]):
    """A checked file, with the lines of its keys."""

    path: Path
    job: Model
    data: dict[Key, Any]

    @contextmanager
    def blame(self, *place: str) -> Iterator[None]:
        """Report an error of Spark or of an option as a mistake at this place of the file."""
        try:
            yield
        except (PySparkException, OptionError) as error:
            line, where = _line_of(self.data, place), ".".join(place)
            wrong = FileMistake(line, where, first_line(error))
            raise ConfigurationError(self.path, [wrong]) from None


def first_line(error: BaseException) -> str:
    """The text of an error without Spark's plan or stack below it."""
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)


def load(path: Path, model: type[Model], environment: Mapping[str, str]) -> Configuration[Model]:
    """Read and check a job's file."""
    mistakes: list[FileMistake] = []
    data = _read(path, environment, mistakes)
    _share_kafka(data)
    try:
        job = model.model_validate(data, context=mistakes)
    except ValidationError as error:
        for found in error.errors(include_input=False, include_url=False):
            place = tuple(part for part in found["loc"] if part != "[key]")
            text = _TEXTS.get(found["type"], found["msg"].removeprefix("Value error, "))
            mistakes.append(FileMistake(_line_of(data, place), ".".join(map(str, place)), text))
    if mistakes:
        raise ConfigurationError(path, mistakes)
    return Configuration(path, job, data)


def _read(
    path: Path, environment: Mapping[str, str], mistakes: list[FileMistake]
) -> dict[Key, Any]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ConfigurationError(path, [FileMistake(1, "", f"cannot be read: {reason}")]) from None
    loader = yaml.SafeLoader(text)
    try:
        root = loader.get_single_node()
        if not isinstance(root, yaml.MappingNode):
            wrong = FileMistake(1, "", "a job's file is a mapping, such as 'name: ...'")
            raise ConfigurationError(path, [wrong])
        # An alias and its anchor are one node. A substituted value must not be substituted again.
        for node in {id(node): node for node in _nodes(root)}.values():
            _substitute(node, environment, mistakes)
        data = _construct(loader, root, mistakes)
    except yaml.YAMLError as error:
        raise ConfigurationError(path, [_syntax(error)]) from None
    except RecursionError:
        wrong = FileMistake(1, "", "a part of the file contains itself, or is nested too deeply")
        raise ConfigurationError(path, [wrong]) from None
    return dict(data)


def _syntax(error: yaml.YAMLError) -> FileMistake:
    mark = getattr(error, "problem_mark", None)
    text = f"not valid YAML: {getattr(error, 'problem', None) or error}"
    return FileMistake(mark.line + 1 if mark else 1, "", text)


def _nodes(node: yaml.Node) -> Iterator[yaml.ScalarNode]:
    """Every scalar below a node."""
    if isinstance(node, yaml.ScalarNode):
        yield node
    else:
        for item in node.value:
            yield from _nodes(item[1] if isinstance(node, yaml.MappingNode) else item)


def _substitute(
    node: yaml.ScalarNode, environment: Mapping[str, str], mistakes: list[FileMistake]
) -> None:
    def value(match: re.Match[str]) -> str:
        name, default = match.groups()
        if name in environment:
            return environment[name]
        if default is None:
            text = f"the environment variable {name} is not set, and no default is given"
            mistakes.append(FileMistake(node.start_mark.line + 1, "", text))
        return default or ""

    node.value = _VARIABLE.sub(value, node.value)


def _construct(loader: yaml.SafeLoader, node: yaml.Node, mistakes: list[FileMistake]) -> Any:
    """Texts, lists and mappings. Of two equal keys the YAML library would keep only the second."""
    if isinstance(node, yaml.SequenceNode):
        return [_construct(loader, item, mistakes) for item in node.value]
    if isinstance(node, yaml.ScalarNode):
        return _scalar(loader, node)
    found: dict[Key, Any] = {}
    for key_node, value_node in node.value:
        name = key_node.value if isinstance(key_node, yaml.ScalarNode) else "?"
        key = _key(name, key_node.start_mark.line + 1)
        if key in found:
            mistakes.append(FileMistake(key.line, key, "is given twice"))
        found[key] = _construct(loader, value_node, mistakes)
    return found


def _scalar(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> Any:
    """A value as it is written. The model converts numbers.

    YAML would change texts without a warning: a user 00123 becomes 83, a password on becomes True.
    """
    kind = node.tag.removeprefix(_YAML)
    if kind == "bool" and node.value.lower() in ("true", "false"):
        return node.value.lower()  # as in Spark's options
    return node.value if kind in _WRITTEN else loader.construct_object(node)


def _share_kafka(data: dict[Key, Any]) -> None:
    """Add the settings of the section `kafka` to each source and sink that lacks them."""
    shared = data.get(Key("kafka"))
    if isinstance(shared, dict):
        prefixed = {_key(f"kafka.{key}", key.line): value for key, value in shared.items()}
        for options in _options(data):
            own = {key.lower() for key in options}  # Spark's option maps ignore case
            options |= {key: value for key, value in prefixed.items() if key.lower() not in own}


def _options(data: Any) -> Iterator[dict[Key, Any]]:
    for key, value in data.items() if isinstance(data, dict) else ():
        if key == "options" and isinstance(value, dict):
            yield value
        elif isinstance(value, dict):
            yield from _options(value)


def _key(name: str, line: int) -> Key:
    key = Key(name)
    key.line = line
    return key


def _line_of(data: Any, place: tuple[Any, ...]) -> int:
    """The line of the innermost part of `place` that is in the file."""
    line = 1
    for part in place:
        if isinstance(data, list) and isinstance(part, int) and part < len(data):
            data = data[part]
            continue
        key = next((key for key in data if key == part), None) if isinstance(data, dict) else None
        if key is None:
            break
        line, data = key.line, data[key]
    return line
