"""Driver. The parts that jobs' files are made of."""

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
    """A part of a file: nothing in it is unknown, nothing changes later."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def checked(check: Check) -> Any:
    """The type of a section `options` that this check accepts.

    A mistake is put into the list that the file's reader brought along, with the line of its key:
    so that it is told beside those of all other sections, and never with a value, which may be a
    secret.
    """

    def validate(value: Any, info: ValidationInfo) -> Any:
        if not isinstance(value, dict):
            return value  # of the wrong type, and the model says so
        mistakes: list[FileMistake] = info.context if info.context is not None else []
        lines = {key.lower(): key.line for key in value}
        # Those with a prefix may be of the section `kafka`.
        first = min((lines[n] for n in lines if not n.startswith("kafka.")), default=1)
        options = {str(name): given for name, given in value.items() if isinstance(given, str)}
        empty = [name for name in value if name not in options]
        for name in empty:
            text = "has no value: one text or number is expected"
            mistakes.append(FileMistake(name.line, name, text))
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
    """The check, with options beside the user's that the job itself sets."""

    def validate(options: Mapping[str, str]) -> Any:
        for name in options:
            for own in job_sets:
                if name.lower() == own.lower():
                    raise OptionError(
                        "option {option} cannot be given: the job sets it", option=name
                    )
        return check({**options, **job_sets})

    return validate


Texts = dict[str, str]  # options that somebody else checks

CheckedStreamOptions = checked(stream_options)
CheckedSinkOptions = checked(sink_options)
CheckedSnapshotOptions = checked(
    _with(batch_options, **{"isolation.level": "snapshot", "startingBatch": "0"})
)
# A job sets both; what they are makes no difference to a check.
VERSION = {"txnAppId": "job", "txnVersion": "0"}
CheckedBatchSinkOptions = checked(_with(batch_write_options, **VERSION))


def _identifier(value: str) -> str:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", value):
        raise ValueError("letters, digits and '_' are accepted, it is a name in SQL")
    return value


ViewName = Annotated[str, AfterValidator(_identifier)]


class Parse(Section):
    """How the value of a record is read."""

    schema_: Annotated[str, Field(alias="schema", min_length=1)]  # columns as in CREATE TABLE
    valid_when: str = "true"  # a condition that a good row meets, in SQL


class Watermark(Section):
    """How late rows may be."""

    column: str
    delay: str


class Source(Section):
    """Topics that are read: a view in the transform."""

    options: CheckedStreamOptions  # type: ignore[valid-type]
    parse: Parse | None = None
    watermark: Watermark | None = None


class DeadLetter(Section):
    """Where rows go that do not parse."""

    topic: str


def check_dead_letters(sources: Iterable[Source], place: object, name: str) -> None:
    """Raise where rows may not parse and would go nowhere, or the other way round."""
    if any(source.parse is not None for source in sources) != (place is not None):
        raise ValueError(
            f"parse and {name} belong together, rows that do not parse go there: give both or none"
        )


class Sink(Section):
    """Topics that are written."""

    options: CheckedSinkOptions  # type: ignore[valid-type]


class BatchSink(Section):
    """Topics that are written, once for each version."""

    options: CheckedBatchSinkOptions  # type: ignore[valid-type]


class Trigger(Section):
    """When a micro-batch starts: give one of the two."""

    processing_time: Annotated[str | None, Field(alias="processingTime")] = None
    available_now: Annotated[bool | None, Field(alias="availableNow")] = None

    @model_validator(mode="after")
    def _one(self) -> "Trigger":
        if (self.processing_time is None) == (self.available_now is None):
            raise ValueError("give one of processingTime and availableNow")
        return self

    def arguments(self) -> dict[str, Any]:
        """As Spark's `trigger` takes them."""
        if self.available_now:
            return {"availableNow": True}
        return {"processingTime": self.processing_time or "0 seconds"}


class Restart(Section):
    """How a job goes on after a failure that another try may mend."""

    limit: Annotated[int, Field(ge=0)] = 10  # in a row, without a batch between them
    first_pause_s: Annotated[float, Field(gt=0)] = 1.0
    longest_pause_s: Annotated[float, Field(gt=0)] = 60.0


class Job(Section):
    """What every job's file has."""

    name: Annotated[str, Field(min_length=1)]
    kafka: dict[str, Any] = Field(default_factory=dict)  # shared by all sources and sinks
    restart: Restart = Restart()
    stop_timeout_s: Annotated[float, Field(ge=0)] = 300.0


class StreamingJob(Job):
    """What every streaming job's file has."""

    trigger: Trigger = Trigger.model_validate({"processingTime": "0 seconds"})
