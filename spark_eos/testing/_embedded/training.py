"""Test process. Run the broker once to write its class archive."""

import tempfile
from pathlib import Path

from spark_eos.testing._embedded.archive import archive_path
from spark_eos.testing._embedded.cluster import EmbeddedKafka

# Java takes some seconds at its end to write the archive.
STOP_GRACE_S = 120.0


def train(jars: Path) -> None:
    """Write the archive if it is missing. Another process may safely do the same."""
    archive = archive_path(jars)
    if archive.exists():
        return
    with tempfile.TemporaryDirectory(prefix="spark-eos-") as folder:
        staging = archive.with_suffix(f".{Path(folder).name}")
        kafka = EmbeddedKafka(folder, jvm_flags=[f"-XX:ArchiveClassesAtExit={staging}"])
        try:
            kafka.start()
            kafka.stop(STOP_GRACE_S)
            if staging.exists():  # not every Java can write one
                staging.replace(archive)
        finally:
            staging.unlink(missing_ok=True)
