"""`python -m spark_eos.testing`: fetch every set of jars; all else then works offline.

It also starts the broker once, which shows that it can, and makes every later start faster.

`python -m spark_eos.testing java` only looks for a Java that can do it. That needs no package, so
`make setup` can ask before it downloads anything.
"""

from __future__ import annotations

import sys

from spark_eos.testing._embedded.failure import EmbeddedKafkaError
from spark_eos.testing._embedded.jars import DELTA, KAFKA, PEER, fetch, kafka_jars
from spark_eos.testing._embedded.java import java_command
from spark_eos.testing._embedded.training import train


def main(arguments: list[str]) -> int:
    """Do what was asked; on failure say why in one line."""
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
