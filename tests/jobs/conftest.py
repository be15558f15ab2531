"""Jobs on this machine. `tests/cluster` runs the same tests on a cluster."""

import pytest

from tests.jobs.submitted import Jobs, Local


@pytest.fixture
def jobs(kafka, tmp_path):
    found = Jobs(kafka, tmp_path, Local)
    yield found
    found.close()
