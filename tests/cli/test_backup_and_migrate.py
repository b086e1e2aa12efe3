"""`tillbook db`: a consistent copy of a database in use, and the upgrade of older databases."""

import os
import shutil
import sqlite3
import threading
from contextlib import closing

import pytest
from click.testing import CliRunner
from flask.cli import FlaskGroup

from app import create_app
from models import schema
from models.db.base import database
from services.backups import backup
from tests.cli import test_help as cli_help
from tests.databases import settings_of
from tests.support import Api, Service, through_flask

pytestmark = pytest.mark.sqlite


def _ask(path, sql):
    with closing(sqlite3.connect(path)) as copy:
        return copy.execute(sql).fetchall()


def test_a_copy_is_complete_and_can_be_served(flask, api, tmp_path, instance):
    order_no = api.buy().data["order_no"]
    target = tmp_path / "copies" / "orders.sqlite"
    target.parent.mkdir()
    flask("db", "backup", target)
    assert os.listdir(target.parent) == ["orders.sqlite"]
    assert target.stat().st_mode & 0o777 == 0o600
    (target.parent / "vault.key").write_bytes((instance / "vault.key").read_bytes())
    database.close()
    copy = create_app(settings_of(target.parent))
    assert Api(through_flask(copy.test_client())).status(order_no) == "pending"


@pytest.fixture
def writing(api):
    """Create orders in another thread, from before the test until after it."""
    stop, placed = threading.Event(), []
    several = threading.Event()

    def write():
        while not stop.is_set():
            placed.append(api.sell("1.00").code)
            if len(placed) > 2:
                several.set()
        database.close()

    thread = threading.Thread(target=write)
    thread.start()
    assert several.wait(20)
    yield placed
    stop.set()
    thread.join()


def test_a_copy_made_while_orders_are_placed_is_consistent(flask, flask_json, writing, tmp_path):
    for number in range(3):
        target = tmp_path / f"{number}.sqlite"
        flask("db", "backup", target)
        assert _ask(target, "PRAGMA integrity_check") == [("ok",)]
        ((orders, held),) = _ask(target, "SELECT COUNT(*), SUM(merchant_actual_amount) FROM 'order'")
        assert orders > 2
        assert _ask(target, "SELECT balance FROM ledger_account WHERE kind = 'held' AND owner = 1") == [(held,)]
        assert _ask(target, "SELECT SUM(amount) FROM entry") == [(0,)]
        for table in ("history", "nonce"):
            assert _ask(target, f"SELECT COUNT(*) FROM {table}") == [(orders,)]


def test_a_copy_ends_however_often_others_write(demo, flask, app, tmp_path, instance, monkeypatch):
    """A copy that started again after each write would never end on a busy database."""
    flask("seed", "--orders", "200")
    monkeypatch.setattr(backup, "PAGES_A_STEP", 8, raising=False)
    steps = []

    def write_meanwhile(done, total):
        steps.append(done)
        assert len(steps) < 300, "the copy begins again after each write"
        with closing(sqlite3.connect(instance / "orders.sqlite")) as other, other:
            other.execute("UPDATE merchant SET name = ? WHERE key = 'other'", (f"at {len(steps)}",))

    backup.backup(tmp_path / "copy.sqlite", write_meanwhile)
    assert _ask(tmp_path / "copy.sqlite", "PRAGMA integrity_check") == [("ok",)]


def test_an_existing_file_is_never_overwritten_and_a_copy_that_cannot_be_written_leaves_nothing(refuses, tmp_path):
    target = tmp_path / "precious"
    target.write_text("precious")
    assert "already exists" in refuses("db", "backup", target)
    assert target.read_text() == "precious"
    assert "No such file" in refuses("db", "backup", tmp_path / "nowhere" / "copy.sqlite")
    assert "already exists" in refuses("db", "backup", tmp_path)
    assert sorted(os.listdir(tmp_path)) == ["instance", "precious"]


def test_a_database_without_a_merchant_is_refused_unless_it_is_expected(any_database, tmp_path):
    app = create_app(settings_of(tmp_path / "mistaken"))
    command = ["db", "backup", str(tmp_path / "copy.sqlite")]
    told = app.test_cli_runner().invoke(args=command)
    assert told.exit_code == 1
    assert "ORDERS_INSTANCE" in told.stderr
    assert not (tmp_path / "copy.sqlite").exists()
    assert app.test_cli_runner().invoke(args=[*command, "--empty"]).exit_code == 0
    assert _ask(tmp_path / "copy.sqlite", "SELECT COUNT(*) FROM merchant") == [(0,)]


# Migrations

ADD_NOTE = """
from peewee import TextField

def up(migrator, db):
    migrator.migrate(migrator.add_column("merchant", "note", TextField(default="")))
"""
HALF_DONE = """
def up(migrator, db):
    db.execute_sql("CREATE TABLE half (a)")
    db.execute_sql("UPDATE merchant SET name = 'half'")
    db.execute_sql("UPDATE nothing_there SET a = 1")
"""


@pytest.fixture
def migrations(tmp_path, monkeypatch):
    """A folder with the project's migrations; `migrations("9001_note", code)` adds one."""
    folder = shutil.copytree(schema.MIGRATIONS, tmp_path / "migrations")
    monkeypatch.setattr(schema, "MIGRATIONS", folder)
    return lambda name, code: (folder / f"{name}.py").write_text(code)


def _names(*more):
    steps = sorted(path.stem for path in schema.MIGRATIONS.glob("[0-9]*.py"))
    own = [step for step in steps if step < "9"]  # the steps of the tests come after all of them
    return [(name,) for name in (*own, *more)]


def test_an_older_database_is_refused_until_it_is_migrated_but_can_be_copied(
    app, migrations, flask, refuses, tmp_path, nothing_changes
):
    migrations("9001_note", ADD_NOTE)
    for command in (("serve",), ("merchant", "list"), ("order", "list"), ("ledger", "verify"), ("seed",)):
        said = refuses(*command)
        assert "older version" in said
        assert "tillbook db migrate" in said
        assert len(said.splitlines()) == 1
    flask("db", "backup", tmp_path / "copy.sqlite")
    assert _ask(tmp_path / "copy.sqlite", "PRAGMA integrity_check") == [("ok",)]


def test_migrating_applies_missing_steps_and_keeps_the_data(api, migrations, flask, rows, instance):
    api.buy()
    before = rows()
    del before["SetupVersion"]  # changes, because the new column is written into each merchant
    migrations("9001_note", ADD_NOTE)
    done = flask("db", "migrate")
    assert (done.stderr, done.stdout) == ("applying 9001_note\n", "applied: 9001_note\n")
    assert rows().items() >= before.items()
    assert _ask(instance / "orders.sqlite", "SELECT DISTINCT note FROM merchant") == [("",)]
    assert "demo" in flask("merchant", "list").output
    assert "up to date" in flask("db", "migrate").output


def test_a_migration_that_fails_is_undone_as_a_whole(app, migrations, refuses, flask_json, instance):
    migrations("9001_note", ADD_NOTE)
    migrations("9002_half", HALF_DONE)
    assert "nothing_there" in refuses("db", "migrate")
    assert _ask(instance / "orders.sqlite", "SELECT name FROM schema_migration") == _names("9001_note")
    assert _ask(instance / "orders.sqlite", "SELECT * FROM sqlite_master WHERE name = 'half'") == []
    assert _ask(instance / "orders.sqlite", "SELECT * FROM merchant WHERE name = 'half'") == []
    migrations("9002_half", ADD_NOTE.replace('"note"', '"remark"'))
    assert "up to date" not in refuses("merchant", "list")


@pytest.fixture
def by_a_newer_version(instance):
    """A database that this version does not know and could not read."""
    with closing(sqlite3.connect(instance / "orders.sqlite")) as newer, newer:
        newer.execute("INSERT INTO schema_migration (name, applied) VALUES ('9999_later', '2030-01-01')")
        newer.execute('ALTER TABLE merchant RENAME COLUMN "secret" TO "seal"')
    return instance


def test_every_command_refuses_a_newer_database_in_one_line_with_status_2(by_a_newer_version, migrations):
    migrations("9001_note", ADD_NOTE)
    groups = [[group, name] for group, names in cli_help.GROUPS.items() for name in names]
    whole = FlaskGroup(create_app=lambda: create_app(settings_of(by_a_newer_version)))
    for command in (["run"], *groups, ["seed"], ["demo-curl"], ["serve"]):
        if command != ["db", "restore"]:
            ended = CliRunner().invoke(whole, command)
            assert (ended.exit_code, len(ended.stderr.splitlines()), ended.stdout) == (2, 1, ""), command
            assert "newer version" in ended.stderr
    (merchant,) = _ask(by_a_newer_version / "orders.sqlite", "SELECT sql FROM sqlite_master WHERE name = 'merchant'")
    assert "note" not in merchant[0]


@pytest.mark.usefixtures("slow")
def test_the_service_does_not_start_on_a_newer_database(by_a_newer_version):
    assert "newer version" in Service(by_a_newer_version).refused()


def test_it_is_not_migrated_under_a_running_service(service):
    done = service.flask("db", "migrate", check=False)
    assert done.returncode == 1
    assert "stop it first" in done.stderr


def test_a_new_database_starts_from_the_models(any_database, migrations, tmp_path):
    """Its tables are those of this version, so no migration is run on it."""
    migrations("9001_note", ADD_NOTE)
    app = create_app(settings_of(tmp_path / "new"))
    runner = app.test_cli_runner()
    assert runner.invoke(args=["merchant", "list"]).output == "no results\n"
    assert "up to date" in runner.invoke(args=["db", "migrate"]).output
    database.close()
    assert _ask(tmp_path / "new" / "orders.sqlite", "SELECT name FROM schema_migration") == _names("9001_note")
