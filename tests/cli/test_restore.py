"""`tillbook db restore`: a checked backup replaces the database, and the replaced database is kept."""

import json
import os
import shutil
import sqlite3
import threading
from contextlib import closing, suppress
from pathlib import Path

import pytest
from cryptography.fernet import Fernet

from runtime.settings import Settings
from services.backups import restore as restoring
from services.platform import files
from tests.support import ROOT, DemoService, until

pytestmark = [pytest.mark.sqlite, pytest.mark.usefixtures("demo")]

DATA = ROOT / "tests" / "data"


def _rows(path, sql="SELECT order_no FROM 'order' ORDER BY id"):
    with closing(sqlite3.connect(path)) as opened:
        return opened.execute(sql).fetchall()


@pytest.fixture
def stopped(instance):
    """The stopped service with the demo content."""
    return DemoService(instance)


@pytest.fixture(scope="module")
def made(seeded_demo, tmp_path_factory):
    """A backup of the demo content with 20 orders."""
    folder = tmp_path_factory.mktemp("backup")
    service = DemoService(shutil.copytree(seeded_demo, folder / "instance"))
    service.flask("seed", "--orders", "20")
    service.flask("db", "backup", str(folder / "made.sqlite"))
    return folder / "made.sqlite"


@pytest.fixture
def backup(made, tmp_path):
    """This test's own copy of that backup."""
    return shutil.copy(made, tmp_path / "backup.sqlite")


@pytest.fixture
def restored(stopped, backup):
    """`restored()` restores the backup and returns the command's output."""
    return lambda *more: stopped.flask("db", "restore", str(backup), "--yes", *more).stdout


@pytest.fixture
def refused(stopped, backup):
    """`refused(backup)`: the one line with which a restore ends that must change nothing."""

    def run(source=backup, status=1):
        names, database = sorted(os.listdir(stopped.instance)), stopped.instance / "orders.sqlite"
        before = database.read_bytes() if database.exists() else None
        done = stopped.flask("db", "restore", str(source), "--yes", check=False)
        assert (done.returncode, done.stderr.splitlines()[-1][:6].lower()) == (status, "error:"), done.stderr
        assert "Traceback" not in done.stderr
        assert set(os.listdir(stopped.instance)) - {"service.lock"} == set(names) - {"service.lock"}
        assert (database.read_bytes() if database.exists() else None) == before
        return done.stderr.splitlines()[-1]

    return run


def _kept(service):
    """The names of the kept files."""
    return sorted(name for name in os.listdir(service.instance) if name.startswith("before-restore-"))


def test_a_backup_made_under_load_is_restored_after_a_kill_and_nothing_is_lost(service, tmp_path):
    answered, before, stop, several = [], [], threading.Event(), threading.Event()
    file = str(tmp_path / "backup.sqlite")

    def place():
        while not stop.is_set():
            answered.append(service.api.sell("1.00").data["order_no"])
            if len(answered) > 20:
                several.set()

    def backs_up_while_orders_are_created():
        Path(file).unlink(missing_ok=True)
        before[:] = answered
        service.flask("db", "backup", file)
        return len(answered) > len(before)

    client = threading.Thread(target=place)
    client.start()
    try:
        assert several.wait(60)
        until(backs_up_while_orders_are_created, 60)
        refused = service.flask("db", "restore", file, "--yes", check=False)
        assert (refused.returncode, "stop it first" in refused.stderr, _kept(service)) == (1, True, [])
    finally:
        stop.set()
        client.join()
    service.kill()
    assert (service.instance / "orders.sqlite-wal").stat().st_size > 0
    service.flask("db", "restore", file, "--yes")
    assert not (service.instance / "orders.sqlite-wal").exists()
    (kept,) = _kept(service)
    restored, replaced = ({no for (no,) in _rows(service.instance / name)} for name in ("orders.sqlite", kept))
    assert set(before) <= restored < replaced == set(answered)
    service.flask("ledger", "verify")
    service.start()
    assert service.api.status(before[0]) == "pending"
    assert service.stop() == 0


def test_the_backup_is_restored_and_the_replaced_database_is_kept_and_can_itself_be_restored(stopped, backup, restored):
    before = _rows(stopped.instance / "orders.sqlite", "SELECT * FROM merchant")
    for ending in ("", "-wal", "-journal"):  # files that a killed restore left
        (stopped.instance / f".orders.sqlite.x1y2.unfinished{ending}").write_text("half")
    said = restored()
    assert not list(stopped.instance.glob(".*.unfinished*"))
    (kept,) = _kept(stopped)
    assert kept in said
    assert "20 orders" in said
    assert _rows(stopped.instance / "orders.sqlite") == _rows(backup)
    assert _rows(stopped.instance / kept) == []
    assert _rows(stopped.instance / kept, "SELECT * FROM merchant") == before
    assert (stopped.instance / "orders.sqlite").stat().st_mode & 0o777 == 0o600
    stopped.flask("ledger", "verify")
    stopped.flask("db", "restore", str(stopped.instance / kept), "--yes")
    assert _rows(stopped.instance / "orders.sqlite") == []


def test_a_restore_needs_a_confirmation_and_the_only_connection(stopped, backup):
    assert "Aborted" in stopped.flask("db", "restore", str(backup), check=False).stderr
    with closing(sqlite3.connect(stopped.instance / "orders.sqlite")) as other:
        other.execute("BEGIN")
        other.execute("SELECT * FROM merchant").fetchall()
        done = stopped.flask("db", "restore", str(backup), "--yes", check=False)
        assert (done.returncode, "has the database open" in done.stderr) == (1, True)
    assert _kept(stopped) == _rows(stopped.instance / "orders.sqlite") == []


def test_a_restore_waits_for_a_command_that_is_about_to_end(stopped, restored):
    with closing(sqlite3.connect(stopped.instance / "orders.sqlite", check_same_thread=False)) as other:
        other.execute("BEGIN")
        other.execute("SELECT * FROM merchant").fetchall()
        ending = threading.Timer(1, other.close)
        ending.start()
        assert "20 orders" in restored()
        ending.join()


def _change(database, sql):
    with closing(sqlite3.connect(database)) as opened, opened:
        opened.execute(sql)


NEWER = "INSERT INTO schema_migration (name, applied) VALUES ('9999_later', '2030-01-01')"


@pytest.mark.parametrize(
    "damage",
    [
        lambda database: database.unlink(),
        lambda database: database.write_bytes(b""),
        lambda database: database.write_bytes(b"no database " * 1000),
        lambda database: database.write_bytes(database.read_bytes()[:8192]),
        lambda database: _change(database, NEWER),
        lambda database: _change(database, "DROP TABLE merchant"),
    ],
    ids=["missing", "empty", "no database", "cut off", "newer", "half of it gone"],
)
def test_it_works_whatever_happened_to_the_database(stopped, backup, restored, damage):
    database = stopped.instance / "orders.sqlite"
    damage(database)
    before = database.read_bytes() if database.exists() else None
    restored()
    assert _rows(database) == _rows(backup)
    stopped.flask("ledger", "verify")
    kept = _kept(stopped)
    assert bool(kept) is (before is not None)
    if "no database" in str(before):
        assert (stopped.instance / kept[0]).read_bytes() == before


def test_a_log_without_its_database_is_not_applied_to_the_restored_one(stopped, backup, restored):
    (stopped.instance / "orders.sqlite").unlink()
    (stopped.instance / "orders.sqlite-wal").write_bytes(b"of another database" * 1000)
    restored()
    assert _rows(stopped.instance / "orders.sqlite") == _rows(backup)
    (kept,) = _kept(stopped)
    assert kept.endswith("-wal")


def test_a_damaged_backup_is_refused(backup, refused):
    with backup.open("r+b") as file:
        file.seek(backup.stat().st_size // 2)
        file.write(b"\xff" * 20_000)
    assert "damaged" in refused() or "malformed" in refused()


def test_a_backup_in_the_middle_of_a_transaction_is_refused(backup, refused, tmp_path):
    half_done = tmp_path / "half.sqlite"
    with closing(sqlite3.connect(backup, isolation_level=None)) as opened:
        opened.execute("PRAGMA cache_size = 1")  # so that pages are written before the commit
        opened.execute("BEGIN")
        opened.execute("UPDATE merchant SET name = 'half'")
        opened.execute(
            "CREATE TABLE filler AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n "
            "WHERE i < 20000) SELECT i, hex(randomblob(50)) FROM n"
        )
        for ending in ("", "-journal"):
            shutil.copy(f"{backup}{ending}", f"{half_done}{ending}")
        opened.execute("ROLLBACK")
    assert "readonly" in refused(half_done)  # it would have to be rolled back first


def test_a_file_that_is_not_a_backup_or_a_backup_of_a_newer_version_is_refused(tmp_path, backup, refused):
    for name, content in {"text": b"no database " * 1000, "empty": b""}.items():
        (tmp_path / name).write_bytes(content)
        refused(tmp_path / name)
    _change(tmp_path / "other.sqlite", "CREATE TABLE bird (name)")
    assert "not a database of this service" in refused(tmp_path / "other.sqlite")
    _change(backup, NEWER)
    assert "newer version" in refused(status=2)


def test_a_backup_with_a_failed_integrity_check_is_refused_without_an_option(stopped, backup, refused, restored):
    _change(backup, "UPDATE ledger_account SET balance = balance + 1 WHERE kind = 'available' AND owner = 1")
    assert "ledger check failed" in refused()
    restored("--unverified")
    assert stopped.flask("ledger", "verify", check=False).returncode == 1


@pytest.mark.parametrize("key", ["missing", "another"])
def test_a_backup_that_the_key_does_not_decrypt_is_refused(stopped, refused, key):
    file = stopped.instance / "vault.key"
    file.unlink() if key == "missing" else file.write_text(Fernet.generate_key().decode())
    assert "key" in refused()


def test_the_old_key_after_the_new_one_decrypts_an_old_backup(stopped, backup, restored):
    file = stopped.instance / "vault.key"
    file.write_text(f"{Fernet.generate_key().decode()}\n{file.read_text()}")
    restored()
    assert "whsec_" in stopped.flask("merchant", "show", "demo").stdout


@pytest.mark.parametrize("release", ["0.1.0", "0.3.0"])  # with other schemas than this release
def test_a_backup_of_an_older_release_is_restored_and_then_migrated(tmp_path, release):
    source, service = tmp_path / "old.sqlite", DemoService(tmp_path / "instance")
    with closing(sqlite3.connect(source)) as old:
        old.executescript((DATA / f"{release}.sql").read_text("utf-8"))
    service.instance.mkdir()
    shutil.copy(DATA / f"{release}.key", service.instance / "vault.key")
    service.flask("db", "restore", str(source), "--yes")
    service.flask("db", "migrate")
    service.flask("ledger", "verify")
    assert _rows(service.instance / "orders.sqlite") == _rows(source)
    codes = _rows(service.instance / "orders.sqlite", "SELECT id FROM history WHERE code = 'created'")
    assert codes == _rows(source, "SELECT id FROM history WHERE why = 'created'") != []
    assert len(json.loads(service.flask("order", "list", "--json").stdout)) > 10
    # It is paused like one of this version, and its ids continue further up.
    service.flask("merchant", "add", "newcomer", "--name", "Added")
    assert _rows(service.instance / "orders.sqlite", "SELECT MAX(id) >= 1000003 FROM merchant") == [(1,)]
    service.flask("db", "resume")


def test_ids_continue_although_the_replaced_database_can_not_be_read(stopped, restored):
    (stopped.instance / "orders.sqlite").write_bytes(b"no database " * 1000)
    restored()
    stopped.flask("merchant", "add", "newcomer", "--name", "Added")
    # The backup has the merchants 1 and 2.
    assert _rows(stopped.instance / "orders.sqlite", "SELECT MAX(id) FROM merchant") == [(1_000_005,)]


class Killed(BaseException):
    """An exception that no code catches."""


def _killed_after(monkeypatch, steps):
    """Let this number of disk operations succeed, and end the restore at the next."""
    left = iter(range(steps))

    def counted(function):
        def run(*arguments, **named):
            if next(left, None) is None:
                raise Killed
            return function(*arguments, **named)

        return run

    for module, name in ((restoring, "copy_database"), (restoring, "_close_log"), (files, "fsync"), (files, "link")):
        monkeypatch.setattr(module, name, counted(getattr(module, name)))
    for name in ("rename", "replace", "unlink"):
        monkeypatch.setattr(Path, name, counted(getattr(Path, name)))


@pytest.mark.parametrize("damaged", [False, True])
def test_killed_at_any_step_it_leaves_the_old_database_or_the_new_one(instance, backup, tmp_path, monkeypatch, damaged):
    old, new = _rows(instance / "orders.sqlite", "SELECT * FROM history"), _rows(backup, "SELECT * FROM history")
    assert old != new
    ends = []
    for steps in range(100):
        folder = shutil.copytree(instance, tmp_path / f"killed-{steps}")
        if damaged:
            (folder / "orders.sqlite").write_bytes(b"damaged " * 1000)
            (folder / "orders.sqlite-wal").write_bytes(b"log " * 1000)
        with monkeypatch.context() as patch:
            _killed_after(patch, steps)
            with suppress(Killed):
                ends.append(restoring.restore(backup, Settings(instance=folder)))
        if damaged and (folder / "orders.sqlite").read_bytes()[:7] == b"damaged":
            logs = sorted(path.read_bytes()[:4] for path in folder.glob("*-wal"))
            assert logs == [b"log "]
        else:
            found = _rows(folder / "orders.sqlite", "SELECT * FROM history")
            assert found == new or (found == old and not ends and not damaged)
        if ends:
            break
    assert 6 < steps < 99
