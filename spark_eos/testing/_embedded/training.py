"""Run the broker once to learn which classes it loads, and keep them as its class archive."""

from __future__ import annotations

import tempfile
from pathlib import Path

from spark_eos.testing._embedded.archive import archive_path
from spark_eos.testing._embedded.cluster import EmbeddedKafka

# Java writes the archive at its end, and takes some seconds for it.
STOP_GRACE_S = 120.0


def train(jars: Path) -> None:
    """Write the archive where there is none. A second one at the same time does no harm."""
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
