"""Lines of the protocol, each with what is left when it is taken away.

A mutant that no test notices is a step that nobody guards.
"""

from tests.mutations.commit_mutants import COMMIT_MUTANTS
from tests.mutations.log_mutants import LOG_MUTANTS
from tests.mutations.recovery_mutants import RECOVERY_MUTANTS

MUTANTS = COMMIT_MUTANTS + LOG_MUTANTS + RECOVERY_MUTANTS
