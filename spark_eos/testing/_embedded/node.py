"""Test process. One node of the cluster: its files, its JVM and its faults."""

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
SETTINGS, LOGGING, TEMPORARY = "server.properties", "log4j2.xml", "tmp"


@dataclass(slots=True, kw_only=True)
class Node:
    """How a node runs. The cluster decides when."""

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
        """Write the configuration, and format a new data folder."""
        data = self.folder / "data"
        for folder in (data, self.folder / TEMPORARY):
            folder.mkdir(parents=True, exist_ok=True)
        settings = server_properties(self.address, self.layout.nodes, data, self.own_properties)
        logging = LOG4J2.format(log=self.folder / "server.log")
        (self.folder / SETTINGS).write_text(properties_text(settings), encoding="utf-8")
        (self.folder / LOGGING).write_text(logging, encoding="utf-8")
        if not (data / "meta.properties").exists():
            self._format()

    def start(self) -> None:
        """Start the JVM, which is not ready yet."""
        if self.process is not None:
            raise EmbeddedKafkaError("node {node} runs already", node=self.address.node)
        flags = [*jvm_flags(len(self.layout.nodes), self.folder / LOGGING), *self.own_flags]
        command = [*self._java(*flags), "kafka.Kafka", str(self.folder / SETTINGS)]
        self.launched = self.launch(command, self.folder / "console.log")

    def end(self, number: signal.Signals, grace_s: float) -> None:
        """Send a signal, wait, and kill the JVM if it still runs. A stopped node stays stopped."""
        if self.launched is not None:
            self.launched.end(number, grace_s)
            self.launched = None

    def signal(self, number: signal.Signals) -> None:
        """Send a signal that does not end the node."""
        process = self.process
        if process is None or not process.signal(number):
            raise EmbeddedKafkaError("node {node} does not run", node=self.address.node)

    def tail(self) -> str:
        """The last lines of the node's logs, for an error."""
        parts = []
        for name in ("server.log", "console.log"):
            path = self.folder / name
            text = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
            if text.strip():
                parts.append("\n".join([f"--- {path}", *text.splitlines()[-TAIL_LINES:]]))
        return "\n".join(parts) or f"{self.folder} has no log"

    def _java(self, *flags: str) -> list[str]:
        # A killed node cannot remove its temporary files.
        flags = (f"-Djava.io.tmpdir={self.folder / TEMPORARY}", *flags)
        classpath = ":".join(str(jar) for jar in sorted(self.jars.glob("*.jar")))
        return [java_command(), *archive_flags(self.jars), *flags, "-cp", classpath]

    def _format(self) -> None:
        logging = f"-Dlog4j2.configurationFile={self.folder / LOGGING}"
        command = [
            *self._java("-XX:TieredStopAtLevel=1", logging),
            *("kafka.tools.StorageTool", "format"),
            *("-t", self.layout.cluster_id, "-c", str(self.folder / SETTINGS)),
        ]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=FORMAT_TIMEOUT_S, check=False
            )
        except subprocess.TimeoutExpired as error:
            raise EmbeddedKafkaError(
                "formatting {folder} took more than {limit_s:.0f} s",
                folder=self.folder,
                limit_s=FORMAT_TIMEOUT_S,
            ) from error
        if done.returncode != 0:
            raise EmbeddedKafkaError(
                "formatting {folder} failed: {output}",
                folder=self.folder,
                output=(done.stderr + done.stdout).strip()[-1500:],
            )
