"""Test process. Before the start: find the Java that runs the broker and fetches its jars."""

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
    """The path of a suitable Java: from JAVA_HOME, then from PATH, as in Kafka's scripts."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which(str(Path(home) / "bin" / "java")) if home else None
    found = found or shutil.which("java")
    if found is None:
        raise EmbeddedKafkaError("Java was not found: {advice}", advice=ADVICE)
    release = java_release(found)
    if release < OLDEST_JAVA:
        raise EmbeddedKafkaError(
            "Java {release} at {path} is too old: {advice}",
            release=release,
            path=found,
            advice=ADVICE,
        )
    return found


@cache
def java_release(command: str) -> int:
    """The feature release of a Java command. Cached: each call would start a JVM."""
    asked = [command, "-version"]
    try:
        answer = subprocess.run(asked, capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        raise EmbeddedKafkaError(
            "{command} -version failed ({error}): {advice}",
            command=command,
            error=error,
            advice=ADVICE,
        ) from error
    return parse_release(answer.stderr + answer.stdout)


def parse_release(text: str) -> int:
    """The feature release in the output of `java -version`: "17.0.15" is 17, "1.8.0_402" is 8."""
    version = re.search(r'version "(?:1\.)?(\d+)', text)
    if version is None:
        raise EmbeddedKafkaError(
            "cannot read a Java version from {output!r}: {advice}", output=text[:200], advice=ADVICE
        )
    return int(version.group(1))
