"""One node of the cluster: its files, its JVM, and the faults a test can cause to it."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from spark_eos.testing._embedded.archive import archive_flags
from spark_eos.testing._embedded.failure import EmbeddedKafkaError
from spark_eos.testing._embedded.java import java_command
from spark_eos.testing._embedded.launch import Launch, Launched
from spark_eos.testing._embedded.layout import Layout
from spark_eos.testing._embedded.process import ProcessIdentity
from spark_eos.testing._embedded.settings import (
    LOG4J2,
    NodeAddress,
    jvm_flags,
    properties_text,
    server_properties,
)

FORMAT_TIMEOUT_S = 60.0
TAIL_LINES = 25


@dataclass(slots=True, kw_only=True)
class Node:
    """A node knows how to run itself; the cluster knows when."""

    folder: Path
    address: NodeAddress
    layout: Layout
    jars: Path
    own_properties: Mapping[str, str]
    own_flags: Sequence[str]
    launch: Launch
    launched: Launched | None = field(default=None, init=False)

    @property
    def process(self) -> ProcessIdentity | None:
        """The running JVM, or None."""
        if self.launched is None or not self.launched.jvm.alive():
            return None
        return self.launched.jvm

    def prepare(self) -> None:
        """Write the configuration, and format the data folder where that was not done before."""
        data = self.folder / "data"
        for folder in (data, self._temporary):
            folder.mkdir(parents=True, exist_ok=True)
        settings = server_properties(self.address, self.layout.nodes, data, self.own_properties)
        self._settings.write_text(properties_text(settings), encoding="utf-8")
        self._logging.write_text(LOG4J2.format(log=self.folder / "server.log"), encoding="utf-8")
        if not (data / "meta.properties").exists():
            self._format()

    def start(self) -> None:
        """Start the JVM; it is not ready yet."""
        if self.process is not None:
            raise EmbeddedKafkaError(f"node {self.address.node} runs already")
        flags = [*jvm_flags(len(self.layout.nodes), self._logging), *self.own_flags]
        self.launched = self.launch(
            [*self._java(*flags), "kafka.Kafka", str(self._settings)], self.folder / "console.log"
        )

    def end(self, number: signal.Signals, grace_s: float) -> None:
        """Send an ending signal, wait, and kill what is left. A node that is down stays down."""
        if self.launched is not None:
            self.launched.end(number, grace_s)
            self.launched = None

    def signal(self, number: signal.Signals) -> None:
        """Send a signal that does not end it."""
        process = self.process
        if process is None or not process.signal(number):
            raise EmbeddedKafkaError(f"node {self.address.node} does not run")

    def tail(self) -> str:
        """The last lines of what the node wrote, for an error."""
        parts = []
        for name in ("server.log", "console.log"):
            path = self.folder / name
            text = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
            if text.strip():
                parts.append("\n".join([f"--- {path}", *text.splitlines()[-TAIL_LINES:]]))
        return "\n".join(parts) or f"{self.folder} has no log"

    @property
    def _settings(self) -> Path:
        return self.folder / "server.properties"

    @property
    def _logging(self) -> Path:
        return self.folder / "log4j2.xml"

    @property
    def _temporary(self) -> Path:
        return self.folder / "tmp"

    def _java(self, *flags: str) -> list[str]:
        # A node that is killed cannot remove what it has unpacked.
        flags = (f"-Djava.io.tmpdir={self._temporary}", *flags)
        classpath = ":".join(str(jar) for jar in sorted(self.jars.glob("*.jar")))
        return [java_command(), *archive_flags(self.jars), *flags, "-cp", classpath]

    def _format(self) -> None:
        command = [
            *self._java("-XX:TieredStopAtLevel=1", f"-Dlog4j2.configurationFile={self._logging}"),
            *("kafka.tools.StorageTool", "format"),
            *("-t", self.layout.cluster_id, "-c", str(self._settings)),
        ]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=FORMAT_TIMEOUT_S, check=False
            )
        except subprocess.TimeoutExpired as error:
            raise EmbeddedKafkaError(f"formatting {self.folder} took too long") from error
        if done.returncode != 0:
            raise EmbeddedKafkaError(
                f"formatting {self.folder} failed: {(done.stderr + done.stdout).strip()[-1500:]}"
            )
