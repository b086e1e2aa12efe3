"""Scheduled backups: when one is due, which ones are kept, and that failures do not stop the service."""

import dataclasses
import os
import sqlite3
import threading
from collections import namedtuple
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest

from app import create_app
from runtime.settings import Settings
from services.backups import backup, scheduled
from tests.support import Service, until

pytestmark = pytest.mark.sqlite


@pytest.fixture
def settings_of_app():
    return {"backup_every": 24, "backup_keep": 3}


@pytest.fixture
def chosen(app, instance, settings_of_app):
    """The settings of the service."""
    return Settings(instance=instance, **settings_of_app)


@pytest.fixture
def look(chosen):
    """`look()` runs the job of every five minutes; returns the backups, oldest first."""

    def run(**changed):
        now = dataclasses.replace(chosen, **changed)
        scheduled.run(now, threading.Event())
        return sorted(os.listdir(now.backups)) if now.backups.exists() else []

    return run


def _name(**ago):
    return f"scheduled-{datetime.now(UTC) - timedelta(**ago):%Y%m%dT%H%M%SZ}.sqlite"


@pytest.fixture
def there(chosen):
    """`there(name, ...)` puts files into the folder of backups."""

    def make(*names):
        chosen.backups.mkdir(exist_ok=True)
        for name in names:
            (chosen.backups / name).write_text("precious")
        return list(names)

    return make


def test_the_first_one_is_made_immediately_and_is_complete(look, chosen, api):
    order_no = api.buy().data["order_no"]
    (name,) = look()
    with closing(sqlite3.connect(chosen.backups / name)) as made:
        assert made.execute("SELECT order_no FROM 'order'").fetchall() == [(order_no,)]
        assert made.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert (chosen.backups / name).stat().st_mode & 0o777 == 0o600
    assert chosen.backups.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    ("hours", "is_due"),
    [(0, False), (23.9, False), (24.1, True), (-9_600, True)],
    ids=["now", "today", "yesterday", "in the future, by a wrong clock"],
)
def test_the_next_is_due_by_the_time_in_the_name_of_the_last(look, there, hours, is_due):
    (last,) = there(_name(hours=hours))
    assert (len(look()) > 1) is is_due
    assert hours > 0 or last in look(backup_keep=1)


def test_the_newest_are_kept_and_only_its_own_and_unfinished_ones_are_deleted(look, there):
    own = there(*(_name(days=days) for days in range(9, 1, -1)))
    others = there(
        "orders-2026-01-01.sqlite",
        "scheduled-by-hand.sqlite",
        "scheduled-20261399T000000Z.sqlite",
        "scheduled-20200101T000000Z.sqlite.gz",
        "my-scheduled-20200101T000000Z.sqlite",
        ".other.unfinished",
    )
    there(f".{_name(days=9)}.x1y2.unfinished", f".{_name(days=9)}.x1y2.unfinished-journal")
    found = look()
    assert set(found) >= set(others)
    left = [name for name in found if name not in others]
    assert left[:2] == own[-2:]
    assert len(left) == 3


def _without_room(monkeypatch, free=50_000):
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(backup.shutil, "disk_usage", lambda folder: usage(0, 0, free))


def _damaged(monkeypatch):
    def fail(copy, progress):
        raise sqlite3.DatabaseError("database disk image is malformed")

    monkeypatch.setattr(backup, "check", fail)


@pytest.mark.parametrize("failing", [_without_room, _damaged], ids=["disk is full", "a copy that fails its check"])
def test_one_that_fails_is_logged_and_reported_until_one_succeeds_and_the_old_ones_stay(
    look, there, http, monkeypatch, caplog, failing
):
    old = there(*(_name(days=days) for days in range(9, 1, -1)))
    with monkeypatch.context() as patch:
        failing(patch)
        assert look() == old
    assert [record.levelname for record in caplog.records if "Scheduled backup" in record.message] == ["ERROR"]
    assert "orders_backup_failed 1.0" in http("GET", "/metrics").text
    assert len(look()) == 3
    assert "orders_backup_failed 0.0" in http("GET", "/metrics").text


def test_the_log_needs_room_too(api, refuses, instance, tmp_path, monkeypatch):
    for _ in range(20):
        api.buy()
    file, log = instance / "orders.sqlite", instance / "orders.sqlite-wal"
    assert log.stat().st_size > file.stat().st_size * 0.2
    _without_room(monkeypatch, round(file.stat().st_size * 1.2))
    assert "MiB of free space" in refuses("db", "backup", str(tmp_path / "copy.sqlite"))
    assert not (tmp_path / "copy.sqlite").exists()


def test_a_missing_folder_is_created_only_in_the_instance(look, tmp_path, caplog):
    """Its place may be an unmounted disk."""
    assert look(backup_folder=tmp_path / "disk" / "backups") == []
    assert not (tmp_path / "disk").exists()
    assert "ERROR" in {record.levelname for record in caplog.records}


@pytest.mark.parametrize("steps", [0, 1, 3])
def test_a_running_backup_is_cancelled_when_the_service_stops(demo, chosen, flask, monkeypatch, steps):
    flask("seed", "--orders", "300")
    monkeypatch.setattr(backup, "PAGES_A_STEP", 20)
    monkeypatch.setattr(backup, "STEPS_OF_A_CHECK", 10)

    class Stopping(threading.Event):
        """An event that is set after this number of checks."""

        asked = 0

        def is_set(self):
            self.asked += 1
            return self.asked > steps

    scheduled.run(chosen, Stopping())
    assert os.listdir(chosen.backups) == []


def test_there_is_no_backup_before_the_first_merchant(tmp_path, caplog):
    chosen = Settings(instance=tmp_path / "new", backup_every=1)
    create_app(chosen)
    scheduled.run(chosen, threading.Event())
    assert os.listdir(chosen.backups) == []
    assert not caplog.records


@pytest.mark.usefixtures("slow")
def test_the_service_makes_one_when_it_starts_but_not_at_each_start_and_none_without_the_setting(instance):
    folder = instance / "backups"
    service = Service(instance).start()
    assert service.stop() == 0
    assert not folder.exists()
    service = Service(instance, ORDERS_BACKUP_EVERY="1").start()
    until(lambda: folder.exists() and [name for name in os.listdir(folder) if name.startswith("scheduled-")])
    assert service.stop() == 0
    made = os.listdir(folder)
    service.start()
    assert service.api.buy().code == 1
    assert service.stop() == 0
    assert os.listdir(folder) == made
