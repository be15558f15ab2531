"""Command line. `spark-eos`: parse the arguments, run one command, return its exit code.

The exit codes are in the epilog below. A failed command prints one line: why, and what to do.
A command is a module with `add_to(commands)`, which adds its parser and sets `run`, a function from
the parsed arguments to an exit code.
"""

import argparse
import sys
from collections.abc import Callable, Sequence

from spark_eos import __version__
from spark_eos._cli import archive, broker
from spark_eos.errors import SparkEosError

EXIT_FAILED = 1
EXIT_INTERRUPTED = 130
COMMANDS = (broker, archive)


def parser() -> argparse.ArgumentParser:
    """The parser of all commands."""
    top = argparse.ArgumentParser(
        prog="spark-eos",
        description="Exactly-once Kafka for PySpark Structured Streaming.",
        epilog="Exit codes: 0 done, 1 failed, 2 wrong arguments, 3 not running.",
    )
    top.add_argument("--version", action="version", version=f"spark-eos {__version__}")
    commands = top.add_subparsers(title="commands", metavar="command", required=True)
    for command in COMMANDS:
        command.add_to(commands)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    parsed = parser().parse_args(arguments)
    run: Callable[[argparse.Namespace], int] = parsed.run
    try:
        return run(parsed)
    except SparkEosError as error:
        print(f"spark-eos: {error}", file=sys.stderr)
        return EXIT_FAILED
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
