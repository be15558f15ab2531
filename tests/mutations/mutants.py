"""Lines of the protocol, each with what is left when it is taken away.

A mutant that no test notices is a step that nobody guards.
"""

from tests.mutations.batch_write_mutants import BATCH_WRITE_MUTANTS
from tests.mutations.commit_mutants import COMMIT_MUTANTS
from tests.mutations.log_mutants import LOG_MUTANTS
from tests.mutations.ownership_mutants import OWNERSHIP_MUTANTS
from tests.mutations.recovery_mutants import RECOVERY_MUTANTS
from tests.mutations.source_mutants import SOURCE_MUTANTS

MUTANTS = (
    COMMIT_MUTANTS
    + LOG_MUTANTS
    + RECOVERY_MUTANTS
    + OWNERSHIP_MUTANTS
    + BATCH_WRITE_MUTANTS
    + SOURCE_MUTANTS
)
