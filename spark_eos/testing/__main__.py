"""Command line. `python -m spark_eos.testing`: fetch every set of jars, for work without a network.

It also starts the broker once. That proves that the broker starts, and makes later starts faster.

`python -m spark_eos.testing java` only looks for a suitable Java. It needs no package, so
`make setup` runs it before any download.
"""

import sys

from spark_eos.testing._embedded.failure import EmbeddedKafkaError
from spark_eos.testing._embedded.jars import DELTA, KAFKA, PEER, fetch, kafka_jars
from spark_eos.testing._embedded.java import java_command
from spark_eos.testing._embedded.training import train


def main(arguments: list[str]) -> int:
    """Run the command. A failure is one line on stderr."""
    try:
        java_command()
        if arguments == ["java"]:
            return 0
        for jars in (KAFKA, DELTA, PEER):
            place = fetch(jars)
            print(f"{place}: {len(list(place.glob('*.jar')))} jars")
        train(kafka_jars())
    except EmbeddedKafkaError as error:
        print(f"spark-eos: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
