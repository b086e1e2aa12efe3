"""The findings that notifications brought: backups, low balances."""

import dataclasses
import threading

import pytest

from runtime.clock import CHINA
from runtime.state import current
from services.backups import scheduled
from services.jobs import sweep as reconciliation
from services.notifications import destinations
from services.operations import alerts
from tests.support import InlinePool


@pytest.fixture
def found(app):
    """`found("backup")`: the severities and facts of the findings of this kind."""
    return lambda kind: [(each.severity, each.facts) for each in alerts.now(CHINA) if each.kind == kind]


@pytest.fixture
def back_up(app):
    """`back_up()`: run the job of scheduled backups, with backups once a day."""
    runtime = current()
    chosen = runtime.settings
    runtime.settings = dataclasses.replace(chosen, backup_every=24)
    yield lambda: scheduled.run(runtime.settings, threading.Event())
    scheduled._failed().clear()
    runtime.settings = chosen


@pytest.mark.sqlite
def test_a_failed_backup_is_a_finding_until_one_succeeds_and_less_urgent_after_a_recent_one(found, back_up, ahead):
    folder = current().settings.backups
    folder.write_text("a file where the folder should be")
    back_up()
    assert found("backup") == [("urgent", {"at": None, "failed": True})]
    folder.unlink()
    back_up()
    assert found("backup") == []
    ahead(25 * 3600)
    aside = folder.rename(folder.with_name("aside"))
    folder.write_text("a file where the folder should be")
    back_up()
    folder.unlink()
    aside.rename(folder)
    ((severity, facts),) = found("backup")
    assert (severity, facts["failed"]) == ("soon", True)


@pytest.mark.sqlite
def test_a_missing_backup_is_urgent_after_two_intervals_if_backups_are_scheduled(found, ahead, request):
    ahead(100 * 3600)
    assert found("backup") == []
    back_up = request.getfixturevalue("back_up")
    back_up()
    ahead(47 * 3600)
    assert found("backup") == []
    ahead(2 * 3600)
    ((severity, facts),) = found("backup")
    assert (severity, facts["failed"]) == ("urgent", False)


def test_a_balance_below_its_limit_is_a_finding(found, api):
    destinations.set_balance_limits({2: 20_000})
    assert [facts["balance"] for _, facts in found("low_balance")] == [0]
    order_no = api.buy("300.00").data["order_no"]
    api.play(order_no, "success")
    reconciliation.sweep(InlinePool())
    assert found("low_balance") == []
    destinations.set_balance_limits({2: 30_001})
    ((severity, facts),) = found("low_balance")
    assert (severity, facts) == ("urgent", {"channel": 2, "balance": 30_000, "limit": 30_001})
    destinations.set_balance_limits({2: 0})
    assert found("low_balance") == []
