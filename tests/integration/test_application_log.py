"""What people do to the log of an application: delete it, restore it, name another one."""

import shutil
from pathlib import Path

import pytest
from deltalake import DeltaTable

from spark_eos.errors import OutcomeUnknownError, StaleLogError
from tests.integration.test_versions import Application
from tests.steps import plan_write


@pytest.fixture
def application(tmp_path, kafka, topic):
    return Application(tmp_path, kafka, topic(2))


@pytest.fixture(params=["one process", "a new process"])
def again(request, new_process):
    """A job that is run again."""
    return new_process if request.param == "a new process" else lambda: None


def log_of(application):
    return Path(application.options(0).transaction_log)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_log_that_is_deleted(application, new_process, version):
    """Whether the last version comes again, an older one, or the next."""
    application.write(1, ["a"], ["b"])
    application.write(2, ["c"])
    shutil.rmtree(log_of(application))
    new_process()
    with pytest.raises(
        StaleLogError, match="Set transactionLog to the newest log of this txnAppId"
    ) as said:
        application.write(version, ["a"], ["b"])
    assert f"the transaction log at {log_of(application)} has no batch" in str(said.value)
    application.check("a", "b", "c")


@pytest.mark.parametrize("version", [1, 2, 3])
def test_log_that_is_restored(application, again, version):
    application.write(1, ["a"], ["b"])
    backup = shutil.copytree(log_of(application), log_of(application).with_name("backup"))
    application.write(2, ["c"])
    newest = shutil.copytree(log_of(application), log_of(application).with_name("newest"))
    shutil.rmtree(log_of(application))
    shutil.copytree(backup, log_of(application))
    again()
    with pytest.raises(StaleLogError, match=r"ends with batch 1 of query"):
        application.write(version, ["c"])
    application.check("a", "b", "c")
    shutil.rmtree(log_of(application))
    newest.rename(log_of(application))
    again()
    application.write(2, ["c"])
    application.write(3, ["d"])
    application.check("a", "b", "c", "d")


@pytest.mark.parametrize("version", [1, 2])
def test_application_with_two_logs(application, tmp_path, version):
    application.write(1, ["a"])
    own = application.options(1).transaction_log
    application._given["transactionLog"] = str(tmp_path / "another")
    with pytest.raises(
        StaleLogError, match="Set transactionLog to the newest log of this txnAppId"
    ):
        application.write(version, ["a"])
    application._given["transactionLog"] = own
    application.write(1, ["a"])
    application.write(2, ["b"])
    application.check("a", "b")


@pytest.mark.parametrize("version", [1, 2])
def test_rows_of_a_version_that_a_person_took_out_of_the_log(application, new_process, version):
    """The log cannot tell any more whether it was complete."""
    application.write(1, ["a"], ["b"])
    newest = DeltaTable(str(log_of(application))).version()
    DeltaTable(str(log_of(application))).restore(1)
    new_process()
    with pytest.raises(
        OutcomeUnknownError, match=r"last batch .* is 1, and its rows were taken out"
    ):
        application.write(version, ["a"], ["b"])
    DeltaTable(str(log_of(application))).restore(newest)
    new_process()
    application.write(1, ["a"], ["b"])
    application.write(2, ["c"])
    application.check("a", "b", "c")


@pytest.mark.parametrize("version", [1, 2])
def test_rows_of_a_decided_version_that_a_person_took_out_of_the_log(
    application, new_process, version, monkeypatch
):
    """Else the next version would abort what is open of it."""
    application.decide(1, ["a"], ["b"], patch=monkeypatch)
    decided = DeltaTable(str(log_of(application))).version()
    DeltaTable(str(log_of(application))).restore(1)
    new_process()
    with pytest.raises(OutcomeUnknownError, match="Restore the newest version that has them"):
        plan_write(application.options(version))
    DeltaTable(str(log_of(application))).restore(decided)
    new_process()
    assert plan_write(application.options(version)).complete
    application.check("a", "b")
