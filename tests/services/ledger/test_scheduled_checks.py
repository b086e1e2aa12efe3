"""Integrity checks in the background: when due or requested, one at a time, each recorded."""

import json
import logging
import subprocess
import sys

import pytest

from models.tables.maintenance import Verification
from runtime.state import current
from services.errors import OperatorError
from services.ledger import scheduled_checks
from tests.databases import settings_of, unguarded
from tests.support import ROOT, completed, until

HOUR = 3_600
BROKEN = "UPDATE ledger_account SET balance = balance + 1 WHERE kind = 'fees'"


@pytest.fixture
def states():
    """The state of each recorded run, the newest first."""
    return lambda: [scheduled_checks.state(run) for run in scheduled_checks.recent()]


@pytest.fixture
def job(instance):
    """The job that the service runs each minute."""
    return lambda every=24: scheduled_checks.run_if_due(settings_of(instance, verify_every=every))


@pytest.fixture
def run_check(states):
    """Request a run; return its record once it has ended."""

    def run(who="operator demo"):
        scheduled_checks.start(who)
        until(lambda: "running" not in states())
        return scheduled_checks.recent()[0]

    return run


@pytest.mark.usefixtures("slow")
def test_a_requested_run_ends_and_is_recorded(app, api, run_check):
    completed(api)
    run = run_check()
    assert (run.who, run.outcome, run.off) == ("operator demo", "holds", {})
    assert run.milliseconds > 0
    assert run.entries == 2 + 3  # the demo's own balance, and the deposit


@pytest.mark.breaks_the_ledger
@pytest.mark.usefixtures("slow")
def test_failures_are_recorded_and_logged(app, api, instance, run_check, caplog):
    completed(api)
    with unguarded(instance) as books:
        books.execute(BROKEN)
    with caplog.at_level(logging.ERROR):
        run = run_check()
    assert run.outcome == "off"
    assert list(run.off) == ["balances equal their entries"]
    assert run.off["balances equal their entries"] == ["account fees 0 has 61 fen, but its entries sum to 60"]
    assert "balances equal their entries: account fees 0 has 61 fen" in caplog.text


@pytest.mark.usefixtures("slow")
def test_there_are_never_two_simultaneous_runs(app, states):
    scheduled_checks.start("operator demo")
    with pytest.raises(OperatorError, match="already running"):
        scheduled_checks.start("operator demo")
    until(lambda: "running" not in states())
    assert len(states()) == 1


@pytest.mark.usefixtures("slow")
def test_a_killed_run_does_not_count_as_running_forever(app, ahead, run_check, states):
    scheduled_checks._begin("operator demo")
    assert states() == ["running"]
    ahead(scheduled_checks.SILENCE + 1)
    assert states() == ["killed"]
    assert run_check().outcome == "holds"
    assert states() == ["holds", "killed"]


@pytest.mark.usefixtures("slow")
def test_a_run_of_a_stopping_service_is_recorded_as_such(app, states):
    scheduled_checks.start("operator demo")
    scheduled_checks.stop()
    assert states() in (["failed"], ["holds"])  # it may have finished just before


@pytest.mark.usefixtures("slow")
def test_a_database_that_cannot_be_opened_gives_no_result(app, instance, run_check, monkeypatch, caplog):
    monkeypatch.setattr(current(), "settings", settings_of(instance / "nowhere", database_url=""))
    run = run_check()
    assert run.outcome == "failed"
    assert scheduled_checks.last() is None
    assert "did not finish" in caplog.text


@pytest.mark.usefixtures("slow")
def test_the_job_runs_when_the_last_run_is_long_ago(app, ahead, job, states):
    job()
    assert states() == ["holds"]
    ahead(23 * HOUR)
    job()
    assert states() == ["holds"]
    ahead(HOUR)
    job()
    assert states() == ["holds", "holds"]
    assert scheduled_checks.last().who == "service"


def test_the_job_does_not_interfere_with_a_running_check(app, job, states):
    scheduled_checks._begin("operator demo")
    job()
    assert states() == ["running"]


@pytest.mark.usefixtures("slow")
def test_an_unfinished_run_is_repeated_in_an_hour(app, ahead, job, states):
    run = scheduled_checks._begin("service")
    scheduled_checks._end(run, "failed", {"the verification did not finish": ["disk is full"]}, 0)
    job()
    assert states() == ["failed"]
    ahead(HOUR)
    job()
    assert states() == ["holds", "failed"]


def test_without_postings_no_check_runs(app, instance, job, states):
    with unguarded(instance) as books:
        for table in ("entry", "posting"):
            books.execute(f"DELETE FROM {table}")
        books.execute("UPDATE ledger_account SET balance = 0, entries = 0, head = ''")
    job()
    assert states() == []


def test_the_newest_hundred_are_kept(app, instance):
    for number in range(103):
        scheduled_checks.record(f"command {number}", {}, 0.1)
    assert Verification.select().count() == 100
    assert [run.who for run in scheduled_checks.recent(2)] == ["command 102", "command 101"]


def test_the_command_records_its_runs(flask, api):
    completed(api)
    flask("ledger", "verify")
    run = scheduled_checks.last()
    assert (run.who, run.outcome) == ("command", "holds")


@pytest.mark.breaks_the_ledger
def test_the_command_records_failures(flask, api, instance):
    completed(api)
    with unguarded(instance) as books:
        books.execute(BROKEN)
    flask("ledger", "verify", fails=True)
    assert scheduled_checks.last().outcome == "off"


@pytest.mark.parametrize(("every", "hours"), [(24, 48), (1, 2), (0, 7 * 24)])
@pytest.mark.usefixtures("slow")
def test_a_ledger_not_checked_for_long_is_overdue(app, ahead, run_check, every, hours):
    run_check()
    ahead(hours * HOUR - 60)
    assert not scheduled_checks.overdue(every)
    ahead(120)
    assert scheduled_checks.overdue(every)


def test_an_old_ledger_never_checked_is_overdue(app):
    assert scheduled_checks.overdue(24)  # the demo's first posting is from January


@pytest.mark.sqlite
@pytest.mark.usefixtures("slow")
def test_the_check_creates_no_database_if_the_file_was_just_moved(tmp_path):
    gone, its_log = tmp_path / "orders.sqlite", tmp_path / "orders.sqlite-wal"
    its_log.write_bytes(b"orders that are nowhere else")
    command = [sys.executable, "-m", "services.ledger.integrity_process"]
    given = json.dumps({"url": "", "file": str(gone)}) + "\n"
    done = subprocess.run(command, cwd=ROOT, input=given, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (1, "")
    assert "unable to open" in done.stderr
    assert (gone.exists(), its_log.read_bytes()) == (False, b"orders that are nowhere else")
