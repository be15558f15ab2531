"""The three sets of jars that tests, benchmarks and the demo use, each fetched once per user.

They stay in the user's cache, so that a second checkout and a run without a network have them. A
set is complete or absent: it is fetched into a folder beside its place and renamed, under a lock.
`python -m spark_eos.testing` fetches all three; `make setup` does that.
"""

from __future__ import annotations

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
    """A folder of jars. Of the lists of coordinates in `choices`, the first that resolves wins."""

    folder: str
    choices: tuple[tuple[str, ...], ...]
    inside_spark: bool = True


def _peer(token_provider: str) -> tuple[str, ...]:
    return (
        "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
        f"org.apache.spark:spark-token-provider-kafka-0-10_2.13:{token_provider}",
    )


# Kafka logs through slf4j 1.7, and only its archive has the binding: hence the second one.
KAFKA = JarSet(
    folder=f"kafka-{KAFKA_VERSION}",
    choices=(
        (
            f"org.apache.kafka:kafka_2.13:{KAFKA_VERSION}",
            "org.apache.logging.log4j:log4j-slf4j-impl:2.25.4",
        ),
    ),
    inside_spark=False,
)
DELTA = JarSet(folder="jars-delta-4.4.0", choices=(("io.delta:delta-spark_4.2_2.13:4.4.0",),))
# The token provider of 4.2.0 is missing in the registry; the preview's is the same for our use.
PEER = JarSet(folder="jars-peer-4.2.0", choices=(_peer("4.2.0"), _peer("4.1.0-preview1")))


def kafka_jars() -> Path:
    """Folder with the jars of the broker; fetched on first use."""
    chosen = os.environ.get(KAFKA_JARS_VARIABLE)
    if not chosen:
        return fetch(KAFKA)
    folder = Path(chosen)
    if not any(folder.glob("kafka_2.13-*.jar")):
        raise EmbeddedKafkaError(
            f"{KAFKA_JARS_VARIABLE}={chosen} holds no kafka_2.13 jar: "
            "name a folder with a broker's jars, or unset it to have them fetched"
        )
    return folder


def delta_jars() -> list[Path]:
    """Jars of delta-spark beyond those of pyspark, for `spark.jars`; fetched on first use."""
    return sorted(fetch(DELTA).glob("*.jar"))


def peer_jars() -> list[Path]:
    """Jars of Spark's own Kafka connector beyond those of pyspark, for `spark.jars`."""
    return sorted(fetch(PEER).glob("*.jar"))


def cache_folder() -> Path:
    """Where this user's jars are: `$XDG_CACHE_HOME/spark-eos`, by default `~/.cache/spark-eos`."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "spark-eos"


def fetch(jars: JarSet) -> Path:
    """Folder of a complete set. Only the first call of the first process goes to the network."""
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
        shutil.rmtree(place, ignore_errors=True)  # a leftover without its mark
        content.rename(place)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _retrieve_any(content: Path, jars: JarSet) -> None:
    shipped = shipped_modules(jar.name for jar in pyspark_jars().glob("*.jar"))
    problems: list[str] = []
    for attempt in range(ATTEMPTS):
        if attempt:
            time.sleep(RETRY_PAUSE_S * attempt)
        for choice in jars.choices:
            try:
                retrieve(
                    [Coordinate.parse(text) for text in choice],
                    content,
                    cache=content.parent.parent / "ivy",
                    without=shipped if jars.inside_spark else (),
                )
            except RetrievalError as error:
                problems.append(str(error))
                shutil.rmtree(content, ignore_errors=True)
            else:
                return
    raise EmbeddedKafkaError(
        f"could not fetch {jars.choices[0][0]} in {ATTEMPTS} attempts: {problems[-1]}. "
        "Check the network, or name a mirror in an Ivy settings file by SPARK_EOS_IVY_SETTINGS"
    )


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold a file lock: two test runs on one machine must not fetch the same set twice."""
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
