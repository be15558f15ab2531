"""A batch write whose driver dies, and the job that is run again."""

import pytest

from tests.chaos.oracle import committed_values


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_job_that_is_run_again_writes_what_is_missing(scenario, tmp_path):
    scenario.options |= {"txnAppId": scenario.topic, "transactionLog": str(tmp_path / "log")}
    scenario.rows = [str(number) for number in range(300)]
    scenario.options["txnVersion"] = "1"
    for step in ("prepared", "checked", "decided"):
        with scenario.driver(step, write=300) as driver:
            driver.wait_for(step)
            driver.kill()
        assert not committed_values(scenario.bootstrap_servers, scenario.topic)
    scenario.run(write=300)
    scenario.check()
    scenario.run(write=300)
    scenario.check()
