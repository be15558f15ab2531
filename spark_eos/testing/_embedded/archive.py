"""Where the class archive of the broker is: Java's class-data sharing, which halves the start.

An archive fits one Java and one list of jars. Java itself checks that, and goes on without one that
does not fit, so having an archive or not changes nothing but the time.
"""

from __future__ import annotations

from pathlib import Path

from spark_eos.testing._embedded.java import java_command, java_release


def archive_path(jars: Path) -> Path:
    """The archive for these jars and the Java of now, there or not."""
    return jars / f"broker-java-{java_release(java_command())}.jsa"


def archive_flags(jars: Path) -> list[str]:
    """Flags that make a JVM use the archive, or none where there is no archive."""
    archive = archive_path(jars)
    return [f"-XX:SharedArchiveFile={archive}"] if archive.exists() else []
