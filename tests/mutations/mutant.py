"""A line of the protocol, with what is left when it is taken away."""

from dataclasses import dataclass

SIMULATION = "tests/simulation"
REAL_LOG = "tests/integration/test_log_append.py"
POWER_CUT = "tests/integration/test_log_power_cut.py"
OTHER_CLUSTER = "tests/integration/test_other_cluster.py"
VERSIONS = "tests/integration/test_versions.py"
SAME_ROWS = "tests/unit/protocol/test_version.py"


@dataclass(frozen=True)
class Mutant:
    """`changes` are pairs of old and new text. `tests` is where it must be noticed."""

    name: str
    file: str
    changes: tuple[tuple[str, str], ...]
    tests: str = SIMULATION

    def apply(self, text):
        for old, new in self.changes:
            assert text.count(old) == 1, f"{self.name}: not once in {self.file}: {old}"
            text = text.replace(old, new)
        return text


def mutant(name, file, old, new="", **others):
    return Mutant(name, f"spark_eos/{file}", ((old, new),), **others)
