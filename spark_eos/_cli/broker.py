"""Command line. `spark-eos broker`: a local Kafka that keeps running after the command returns.

    start   starts a new cluster, or the one in the folder; prints the bootstrap servers
    status  0 and the bootstrap servers if every node runs; else 3
    stop    0 when no node runs any more, also if none ran before

The folder names its processes by pid and start time. No process is found by its name.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from spark_eos.testing import EmbeddedKafka
from spark_eos.testing._embedded import launch, running

DEFAULT_FOLDER = Path(".spark-eos") / "broker"
EXIT_DONE = 0
EXIT_NOT_RUNNING = 3


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add this command to the command line."""
    text = "run a local Kafka"
    broker = commands.add_parser("broker", help=text, description=f"{text.capitalize()}.")
    actions = broker.add_subparsers(title="actions", metavar="action", required=True)

    starting = _action(actions, "start", "start the cluster and leave it running")
    starting.add_argument(
        "--nodes", type=int, choices=(1, 3), default=1, help="number of nodes (default: 1)"
    )
    starting.add_argument(
        "--property",
        dest="properties",
        metavar="KEY=VALUE",
        type=_property,
        action="append",
        default=[],
        help="a setting for server.properties; may be given more than once",
    )
    starting.set_defaults(run=start)
    _action(actions, "status", "say whether the cluster runs, and where").set_defaults(run=status)
    _action(actions, "stop", "stop the cluster; its data stays").set_defaults(run=stop)


def start(arguments: argparse.Namespace) -> int:
    """Start the cluster. A cluster that runs already is an error that names its pids."""
    properties = dict(arguments.properties)
    cluster = EmbeddedKafka(arguments.folder, arguments.nodes, properties, how=launch.detached)
    print(cluster.start().bootstrap_servers)
    return EXIT_DONE


def status(arguments: argparse.Namespace) -> int:
    """Print which nodes run."""
    cluster = running.look(arguments.folder)
    if cluster is None or not cluster.pids:
        print(f"not running: {arguments.folder}")
        return EXIT_NOT_RUNNING
    pids = ", ".join(f"node {node} pid {pid}" for node, pid in sorted(cluster.pids.items()))
    if len(cluster.pids) < cluster.nodes:
        print(f"{len(cluster.pids)} of {cluster.nodes} nodes running: {pids}")
        return EXIT_NOT_RUNNING
    print(f"{cluster.bootstrap_servers}  running: {pids}")
    return EXIT_DONE


def stop(arguments: argparse.Namespace) -> int:
    """Stop every node."""
    stopped = running.stop(arguments.folder)
    print(f"stopped: pids {stopped}" if stopped else f"not running: {arguments.folder}")
    return EXIT_DONE


def _action(
    actions: argparse._SubParsersAction[argparse.ArgumentParser], name: str, text: str
) -> argparse.ArgumentParser:
    action = actions.add_parser(name, help=text, description=f"{text.capitalize()}.")
    action.add_argument(
        "--folder",
        type=Path,
        default=DEFAULT_FOLDER,
        help=f"where the cluster keeps its data (default: {DEFAULT_FOLDER})",
    )
    return action


def _property(text: str) -> tuple[str, str]:
    key, separator, value = text.partition("=")
    if not (key.strip() and separator):
        raise argparse.ArgumentTypeError(f"{text!r} is not KEY=VALUE")
    return key.strip(), value.strip()
