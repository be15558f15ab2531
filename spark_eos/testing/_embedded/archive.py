"""Test process. The broker's class archive: Java's class-data sharing, which halves the start.

An archive fits one Java and one list of jars. Java ignores an archive that does not fit, so an
archive changes nothing but the time.
"""

from pathlib import Path

from spark_eos.testing._embedded.java import java_command, java_release


def archive_path(jars: Path) -> Path:
    """The path of the archive for these jars and the current Java."""
    return jars / f"broker-java-{java_release(java_command())}.jsa"


def archive_flags(jars: Path) -> list[str]:
    """The JVM flags that use the archive; none without an archive."""
    archive = archive_path(jars)
    return [f"-XX:SharedArchiveFile={archive}"] if archive.exists() else []
