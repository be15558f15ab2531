"""The Java that runs the broker and fetches its jars, checked before anything is started."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

from spark_eos.testing._embedded.failure import EmbeddedKafkaError

OLDEST_JAVA = 17
ADVICE = f"install a JDK or JRE {OLDEST_JAVA} or newer and put it on PATH or in JAVA_HOME"


def java_command() -> str:
    """Path of a Java that can run Kafka: JAVA_HOME first, then PATH, as Kafka's scripts do."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which(str(Path(home) / "bin" / "java")) if home else None
    found = found or shutil.which("java")
    if found is None:
        raise EmbeddedKafkaError(f"Java was not found: {ADVICE}")
    release = java_release(found)
    if release < OLDEST_JAVA:
        raise EmbeddedKafkaError(f"Java {release} at {found} is too old: {ADVICE}")
    return found


@cache
def java_release(command: str) -> int:
    """Feature release of a Java command; cached, because asking starts a JVM."""
    try:
        answer = subprocess.run(
            [command, "-version"], capture_output=True, text=True, timeout=30, check=True
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise EmbeddedKafkaError(f"{command} -version failed ({error}): {ADVICE}") from error
    return parse_release(answer.stderr + answer.stdout)


def parse_release(text: str) -> int:
    """Feature release told by `java -version`: "17.0.15" is 17, the old "1.8.0_402" is 8."""
    version = re.search(r'version "(?:1\.)?(\d+)', text)
    if version is None:
        raise EmbeddedKafkaError(f"cannot read a Java version from {text[:200]!r}: {ADVICE}")
    return int(version.group(1))
