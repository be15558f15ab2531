"""What a node is told: pure functions from addresses to server.properties, logging and JVM flags.

A node is broker and controller in one. Where the settings differ from Kafka's defaults, the name of
their group says why: a small machine, a quick answer, or nothing done behind a test's back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

HOST = "127.0.0.1"
HEAP_ALONE = "512m"
HEAP_OF_THREE = "384m"
SMALL_MACHINE = {
    "num.io.threads": "4",
    "log.cleaner.dedupe.buffer.size": str(16 * 1024 * 1024),
    "offsets.topic.num.partitions": "5",
    "transaction.state.log.num.partitions": "5",
    "share.coordinator.state.topic.num.partitions": "1",
}
QUICK = {
    "group.initial.rebalance.delay.ms": "0",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
    # A node that was killed may join again only when its old session has run out.
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
}
EXPLICIT = {
    # A typing error in a topic's name must be an error.
    "auto.create.topics.enable": "false",
    # Rows may carry old timestamps of their own; retention would delete them under a test.
    "log.retention.ms": "-1",
    "unclean.leader.election.enable": "false",
}
# Kafka's own start script, without its remote monitoring. The compiler stays in its normal mode: a
# broker that starts 0.3 s sooner and then never gets fast would spoil every benchmark.
JVM_FLAGS = (
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-Djava.awt.headless=true",
)
LOG4J2 = """<?xml version="1.0" encoding="UTF-8"?>
<Configuration status="ERROR" shutdownHook="disable">
  <Appenders>
    <RollingFile name="file" fileName="{log}" filePattern="{log}.%i" append="true">
      <PatternLayout pattern="[%d] %p %m (%c)%n"/>
      <SizeBasedTriggeringPolicy size="20 MB"/>
      <DefaultRolloverStrategy max="2"/>
    </RollingFile>
  </Appenders>
  <Loggers>
    <Logger name="org.apache.kafka.common.config.AbstractConfig" level="WARN"/>
    <Root level="INFO"><AppenderRef ref="file"/></Root>
  </Loggers>
</Configuration>
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeAddress:
    """Number and ports of one node; they stay the same over restarts."""

    node: int
    port: int
    controller_port: int

    @property
    def client(self) -> str:
        """What a client connects to."""
        return f"{HOST}:{self.port}"

    @property
    def voter(self) -> str:
        """How the controllers name this node among themselves."""
        return f"{self.node}@{HOST}:{self.controller_port}"


def server_properties(
    me: NodeAddress, everyone: Sequence[NodeAddress], data: Path, own: Mapping[str, str]
) -> dict[str, str]:
    """Settings of one node; the caller's own come last and win."""
    copies = str(len(everyone))
    enough = "2" if len(everyone) > 1 else "1"
    return {
        "process.roles": "broker,controller",
        "node.id": str(me.node),
        "broker.rack": str(me.node),
        "controller.quorum.voters": ",".join(address.voter for address in everyone),
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "PLAINTEXT",
        "listeners": f"PLAINTEXT://{me.client},CONTROLLER://{HOST}:{me.controller_port}",
        "advertised.listeners": f"PLAINTEXT://{me.client}",
        "log.dirs": str(data),
        "default.replication.factor": copies,
        "min.insync.replicas": enough,
        "offsets.topic.replication.factor": copies,
        "transaction.state.log.replication.factor": copies,
        "transaction.state.log.min.isr": enough,
        "share.coordinator.state.topic.replication.factor": copies,
        "share.coordinator.state.topic.min.isr": enough,
        **SMALL_MACHINE,
        **QUICK,
        **EXPLICIT,
        **own,
    }


def properties_text(properties: Mapping[str, str]) -> str:
    """A Java properties file; a backslash is its escape character."""
    return "".join(f"{key}={value}\n" for key, value in properties.items()).replace("\\", "\\\\")


def jvm_flags(nodes: int, logging: Path) -> list[str]:
    """Flags of a broker's JVM."""
    heap = HEAP_ALONE if nodes == 1 else HEAP_OF_THREE
    return [f"-Xmx{heap}", f"-Xms{heap}", *JVM_FLAGS, f"-Dlog4j2.configurationFile={logging}"]
