"""Integrity checks in the background: when due or requested, one at a time, each recorded."""

import json
import logging
import os
import sqlite3
import subprocess
import sys
from contextlib import closing, contextmanager
from pathlib import Path
from subprocess import PIPE

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
    return lambda: scheduled_checks.run_if_due(settings_of(instance, verify_every=24))


@pytest.fixture
def run_check(slow, states):
    """Request a run, while which no other one is started; return its record once it has ended."""

    def run():
        scheduled_checks.start("operator demo")
        with pytest.raises(OperatorError, match="already running"):
            scheduled_checks.start("operator demo")
        until(lambda: "running" not in states())
        return scheduled_checks.recent()[0]

    return run


def test_a_requested_run_ends_and_is_recorded(app, api, run_check, states):
    completed(api)
    run = run_check()
    assert (run.who, run.outcome, run.off, states()) == ("operator demo", "holds", {}, ["holds"])
    assert run.milliseconds > 0
    assert run.entries == 2 + 3  # the demo's own balance, and the deposit


@pytest.mark.breaks_the_ledger
def test_failures_are_recorded_and_logged(app, api, instance, run_check, caplog):
    completed(api)
    with unguarded(instance) as books:
        books.execute(BROKEN)
    with caplog.at_level(logging.ERROR):
        run = run_check()
    line = "account fees 0 has 61 fen, but its entries sum to 60"
    assert (run.outcome, run.off) == ("off", {"balances equal their entries": [line]})
    assert f"balances equal their entries: {line}" in caplog.text


def test_a_killed_run_does_not_count_as_running_forever(app, ahead, run_check, job, states):
    scheduled_checks._begin("operator demo")
    job()  # does not interfere
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


def test_a_database_that_cannot_be_opened_gives_no_result(app, instance, run_check, monkeypatch, caplog):
    monkeypatch.setattr(current(), "settings", settings_of(instance / "nowhere", database_url=""))
    assert run_check().outcome == "failed"
    assert scheduled_checks.last() is None
    assert "did not finish" in caplog.text


@pytest.mark.usefixtures("slow")
def test_the_job_runs_a_day_after_the_last_run_and_an_hour_after_an_unfinished_one(app, ahead, job, states):
    job()
    assert states() == ["holds"]
    ahead(23 * HOUR)
    job()
    assert states() == ["holds"]
    ahead(HOUR)
    job()
    assert (states(), scheduled_checks.last().who) == (["holds", "holds"], "service")
    run = scheduled_checks._begin("service")
    scheduled_checks._end(run, "failed", {"the verification did not finish": ["disk is full"]}, 0)
    job()
    assert states() == ["failed", "holds", "holds"]
    ahead(HOUR)
    job()
    assert states() == ["holds", "failed", "holds", "holds"]


def test_without_postings_no_check_runs(app, instance, job, states):
    with unguarded(instance) as books:
        for table in ("entry", "posting"):
            books.execute(f"DELETE FROM {table}")
        books.execute("UPDATE ledger_account SET balance = 0, entries = 0, head = ''")
    job()
    assert states() == []


@pytest.mark.breaks_the_ledger
def test_the_command_records_its_runs_and_the_newest_hundred_are_kept(flask, api, instance):
    for number in range(103):
        scheduled_checks.record(f"command {number}", {}, 0.1)
    assert Verification.select().count() == 100
    assert [run.who for run in scheduled_checks.recent(2)] == ["command 102", "command 101"]
    completed(api)
    flask("ledger", "verify")
    assert (scheduled_checks.last().who, scheduled_checks.last().outcome) == ("command", "holds")
    with unguarded(instance) as books:
        books.execute(BROKEN)
    flask("ledger", "verify", fails=True)
    assert scheduled_checks.last().outcome == "off"


@pytest.mark.parametrize(("every", "hours"), [(24, 48), (1, 2), (0, 7 * 24)])
def test_a_ledger_not_checked_for_long_is_overdue(app, ahead, every, hours):
    assert scheduled_checks.overdue(24)  # the demo's first posting is from January
    scheduled_checks.record("command", {}, 0.1)
    ahead(hours * HOUR - 60)
    assert not scheduled_checks.overdue(every)
    ahead(120)
    assert scheduled_checks.overdue(every)


@contextmanager
def check_of(file):
    """The process that checks a database file, of a service that runs until its standard input is closed."""
    command = [sys.executable, "-m", "services.ledger.integrity_process"]
    with subprocess.Popen(command, cwd=ROOT, stdin=PIPE, stdout=PIPE, stderr=PIPE, text=True) as check:
        check.stdin.write(json.dumps({"url": "", "file": str(file)}) + "\n")
        check.stdin.flush()
        yield check


@pytest.mark.sqlite
@pytest.mark.usefixtures("slow")
def test_the_check_creates_no_database_if_the_file_was_just_moved(tmp_path):
    gone, its_log = tmp_path / "orders.sqlite", tmp_path / "orders.sqlite-wal"
    its_log.write_bytes(b"orders that are nowhere else")
    with check_of(gone) as check:
        output, errors = check.stdout.read(), check.stderr.read()
    assert (check.returncode, output) == (1, "")
    assert "unable to open" in errors
    assert (gone.exists(), its_log.read_bytes()) == (False, b"orders that are nowhere else")


@pytest.mark.sqlite
@pytest.mark.usefixtures("slow")
def test_the_check_of_a_killed_service_ends_and_leaves_the_database(tmp_path):
    file = tmp_path / "orders.sqlite"
    with closing(sqlite3.connect(file, isolation_level=None)) as opened:
        opened.execute("PRAGMA locking_mode = EXCLUSIVE")
        opened.execute("CREATE TABLE kept (id)")
        opened.execute("BEGIN EXCLUSIVE")  # the check waits for it
        with check_of(file) as check:
            until(lambda: str(file) in [os.path.realpath(each) for each in Path(f"/proc/{check.pid}/fd").iterdir()])
            check.stdin.close()
            assert (check.wait(20), check.stdout.read(), check.stderr.read()) == (1, "", "")
