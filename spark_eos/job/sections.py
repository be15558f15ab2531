"""Driver. The sections of a job's file."""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    model_validator,
)

from spark_eos._options import batch_options, batch_write_options, sink_options, stream_options
from spark_eos.errors import OptionError
from spark_eos.job.configuration import FileMistake

Check = Callable[[Mapping[str, str]], Any]


class Section(BaseModel):
    """A part of a file: no unknown key is accepted, and no value changes later."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def checked(check: Check) -> Any:
    """The type of a section `options` that this check accepts.

    Mistakes go into the list of the file's reader, each with the line of its key. So one error has
    those of all sections, and pydantic never prints a value, which may be a secret.
    """

    def validate(value: Any, info: ValidationInfo) -> Any:
        if not isinstance(value, dict):
            return value  # pydantic reports the wrong type
        mistakes: list[FileMistake] = info.context if info.context is not None else []
        lines = {key.lower(): key.line for key in value}
        # Keys with this prefix may come from the section `kafka`.
        first = min((lines[n] for n in lines if not n.startswith("kafka.")), default=1)
        options = {str(name): given for name, given in value.items() if isinstance(given, str)}
        empty = [name for name in value if name not in options]
        expected = "has no value: one text or number is expected"
        mistakes += (FileMistake(name.line, name, expected) for name in empty)
        try:
            check(options)
        except OptionError as error:
            for mistake in error.mistakes:
                if mistake.option not in empty:
                    line = lines.get((mistake.option or "").lower(), first)
                    mistakes.append(FileMistake(line, "", mistake.text))
        return options

    return Annotated[dict[str, str], BeforeValidator(validate)]


def _with(check: Check, **job_sets: str) -> Check:
    """The check, with more options that the job itself sets."""
    own = {name.lower() for name in job_sets}

    def validate(options: Mapping[str, str]) -> Any:
        for name in options:
            if name.lower() in own:
                raise OptionError("option {option} cannot be given: the job sets it", option=name)
        return check({**options, **job_sets})

    return validate


Texts = dict[str, str]  # options that are checked elsewhere

CheckedStreamOptions = checked(stream_options)
CheckedSinkOptions = checked(sink_options)
CheckedSnapshotOptions = checked(
    _with(batch_options, **{"isolation.level": "snapshot", "startingBatch": "0"})
)
# A job sets both. Their values make no difference to a check.
VERSION = {"txnAppId": "job", "txnVersion": "0"}
CheckedBatchSinkOptions = checked(_with(batch_write_options, **VERSION))


def _identifier(value: str) -> str:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", value):
        raise ValueError("a name in SQL has letters, digits and '_', and starts with no digit")
    return value


ViewName = Annotated[str, AfterValidator(_identifier)]


class Parse(Section):
    """How the value of a record is read."""

    schema_: Annotated[str, Field(alias="schema", min_length=1)]  # columns as in CREATE TABLE
    valid_when: str = "true"  # an SQL condition that a good row meets


class Watermark(Section):
    """How late rows may be."""

    column: str
    delay: str


class Source(Section):
    """Topics to read: a view in the transform."""

    options: CheckedStreamOptions  # type: ignore[valid-type]
    parse: Parse | None = None
    watermark: Watermark | None = None


class DeadLetter(Section):
    """The topic of the rows that do not parse."""

    topic: str


def check_dead_letters(sources: Iterable[Source], place: object, name: str) -> None:
    """Raise unless both are given, or none: a source that is parsed, and a place for bad rows."""
    if any(source.parse is not None for source in sources) != (place is not None):
        raise ValueError(f"parse and {name} belong together: bad rows go there. Give both or none")


class Sink(Section):
    """Topics to write."""

    options: CheckedSinkOptions  # type: ignore[valid-type]


class BatchSink(Section):
    """Topics to write, once for each version."""

    options: CheckedBatchSinkOptions  # type: ignore[valid-type]


class Trigger(Section):
    """When a micro-batch starts. One of the two is given."""

    processing_time: Annotated[str | None, Field(alias="processingTime")] = None
    available_now: Annotated[bool | None, Field(alias="availableNow")] = None

    @model_validator(mode="after")
    def _one(self) -> "Trigger":
        if (self.processing_time is None) == (self.available_now is None):
            raise ValueError("give one of processingTime and availableNow")
        return self

    def arguments(self) -> dict[str, Any]:
        """The arguments of Spark's `trigger`."""
        if self.available_now:
            return {"availableNow": True}
        return {"processingTime": self.processing_time or "0 seconds"}


class Restart(Section):
    """How often, and after which pauses, a job retries."""

    limit: Annotated[int, Field(ge=0)] = 10  # failures in a row, without a batch between them
    first_pause_s: Annotated[float, Field(gt=0)] = 1.0
    longest_pause_s: Annotated[float, Field(gt=0)] = 60.0


class Job(Section):
    """The sections of every job."""

    name: Annotated[str, Field(min_length=1)]
    kafka: dict[str, Any] = Field(default_factory=dict)  # shared by all sources and sinks
    restart: Restart = Restart()
    stop_timeout_s: Annotated[float, Field(ge=0)] = 300.0


class StreamingJob(Job):
    """The sections of every streaming job."""

    trigger: Trigger = Trigger.model_validate({"processingTime": "0 seconds"})
