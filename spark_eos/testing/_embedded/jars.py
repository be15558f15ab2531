"""Test process. The three sets of jars for tests, benchmarks and the demo, fetched once per user.

The sets stay in the user's cache, for other checkouts and for work without a network. A set is
complete or absent: it is fetched into a temporary folder, under a lock, and then renamed.
"""

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from spark_eos.testing._embedded.failure import EmbeddedKafkaError
from spark_eos.testing._embedded.ivy import (
    Coordinate,
    RetrievalError,
    pyspark_jars,
    retrieve,
    shipped_modules,
)

KAFKA_VERSION = "4.3.1"
KAFKA_JARS_VARIABLE = "SPARK_EOS_KAFKA_JARS"
ATTEMPTS = 3
RETRY_PAUSE_S = 2.0
COMPLETE = "complete"


@dataclass(frozen=True, slots=True, kw_only=True)
class JarSet:
    """A folder of jars. The first list of coordinates in `choices` that resolves is used."""

    folder: str
    choices: tuple[tuple[str, ...], ...]
    inside_spark: bool = True


# Kafka logs through slf4j 1.7. Kafka's download has the binding, but its Maven artifact lacks it.
_BINDING = "org.apache.logging.log4j:log4j-slf4j-impl:2.25.4"
KAFKA = JarSet(
    folder=f"kafka-{KAFKA_VERSION}",
    choices=((f"org.apache.kafka:kafka_2.13:{KAFKA_VERSION}", _BINDING),),
    inside_spark=False,
)
DELTA = JarSet(folder="jars-delta-4.4.0", choices=(("io.delta:delta-spark_4.2_2.13:4.4.0",),))
_CONNECTOR = "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0"
_PROVIDER = "org.apache.spark:spark-token-provider-kafka-0-10_2.13"
# The registry lacks the token provider of 4.2.0. The one of the preview works the same here.
PEER = JarSet(
    folder="jars-peer-4.2.0",
    choices=tuple((_CONNECTOR, f"{_PROVIDER}:{v}") for v in ("4.2.0", "4.1.0-preview1")),
)


def kafka_jars() -> Path:
    """The folder of the broker's jars, fetched on first use."""
    chosen = os.environ.get(KAFKA_JARS_VARIABLE)
    if not chosen:
        return fetch(KAFKA)
    folder = Path(chosen)
    if not any(folder.glob("kafka_2.13-*.jar")):
        raise EmbeddedKafkaError(
            "{variable}={folder} holds no kafka_2.13 jar. Name a folder with a broker's jars, or"
            " unset {variable} to fetch them",
            variable=KAFKA_JARS_VARIABLE,
            folder=chosen,
        )
    return folder


def delta_jars() -> list[Path]:
    """The jars of delta-spark that pyspark lacks, for `spark.jars`; fetched on first use."""
    return sorted(fetch(DELTA).glob("*.jar"))


def peer_jars() -> list[Path]:
    """The jars of Spark's own Kafka connector that pyspark lacks; fetched on first use."""
    return sorted(fetch(PEER).glob("*.jar"))


def cache_folder() -> Path:
    """The user's cache: `$XDG_CACHE_HOME/spark-eos`, by default `~/.cache/spark-eos`."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "spark-eos"


def fetch(jars: JarSet) -> Path:
    """The folder of a complete set. Only the first call of the first process uses the network."""
    cache = cache_folder()
    place = cache / jars.folder
    if (place / COMPLETE).exists():
        return place
    cache.mkdir(parents=True, exist_ok=True)
    with _locked(cache / f"{jars.folder}.lock"):
        if not (place / COMPLETE).exists():
            _fetch_into(place, jars)
    return place


def _fetch_into(place: Path, jars: JarSet) -> None:
    staging = Path(tempfile.mkdtemp(prefix=f"{place.name}.", dir=place.parent))
    try:
        content = staging / place.name
        _retrieve_any(content, jars)
        (content / COMPLETE).touch()
        shutil.rmtree(place, ignore_errors=True)  # an incomplete set
        content.rename(place)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _retrieve_any(content: Path, jars: JarSet) -> None:
    shipped = shipped_modules(jar.name for jar in pyspark_jars().glob("*.jar"))
    without = shipped if jars.inside_spark else set()
    cache = content.parent.parent / "ivy"
    problems: list[str] = []
    for attempt in range(ATTEMPTS):
        if attempt:
            time.sleep(RETRY_PAUSE_S * attempt)
        for choice in jars.choices:
            try:
                retrieve(map(Coordinate.parse, choice), content, cache=cache, without=without)
            except RetrievalError as error:
                problems.append(str(error))
                shutil.rmtree(content, ignore_errors=True)
            else:
                return
    raise EmbeddedKafkaError(
        "could not fetch {coordinate} in {attempts} attempts: {problem}. Check the network, or set"
        " SPARK_EOS_IVY_SETTINGS to an Ivy settings file with a mirror",
        coordinate=jars.choices[0][0],
        attempts=ATTEMPTS,
        problem=problems[-1],
    )


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold a file lock, so that two processes do not fetch the same set."""
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
