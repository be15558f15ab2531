"""Pure. The configuration of a node: server.properties, logging and JVM flags.

A node is both broker and controller. The settings that differ from Kafka's defaults are grouped by
their reason: a small machine, quick answers, or no implicit actions during a test.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

HOST = "127.0.0.1"
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
    # A killed node may join again only after its old session has expired.
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
}
EXPLICIT = {
    # A typing error in a topic name must be an error.
    "auto.create.topics.enable": "false",
    # Rows may have old timestamps. Retention would delete them during a test.
    "log.retention.ms": "-1",
    "unclean.leader.election.enable": "false",
}
# The flags of Kafka's start script, without JMX. The compiler keeps its normal mode: another mode
# starts 0.3 s sooner but never gets fast, which would spoil every benchmark.
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
    """The number and the ports of one node. Both survive restarts."""

    node: int
    port: int
    controller_port: int

    @property
    def client(self) -> str:
        """The address for clients."""
        return f"{HOST}:{self.port}"

    @property
    def voter(self) -> str:
        """The node's name in `controller.quorum.voters`."""
        return f"{self.node}@{HOST}:{self.controller_port}"


def server_properties(
    me: NodeAddress, everyone: Sequence[NodeAddress], data: Path, own: Mapping[str, str]
) -> dict[str, str]:
    """The settings of one node. The caller's own settings win."""
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
    """A Java properties file, whose escape character is the backslash."""
    return "".join(f"{key}={value}\n" for key, value in properties.items()).replace("\\", "\\\\")


def jvm_flags(nodes: int, logging: Path) -> list[str]:
    """The flags of a broker's JVM."""
    heap = "512m" if nodes == 1 else "384m"
    return [f"-Xmx{heap}", f"-Xms{heap}", *JVM_FLAGS, f"-Dlog4j2.configurationFile={logging}"]
