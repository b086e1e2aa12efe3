"""A database of each release (tests/data) is upgraded: nothing is lost, and everything works."""

import json
import re
import shutil
import sqlite3
from collections import Counter
from contextlib import closing

import pytest
from peewee import DatabaseError

from app import create_app
from models import schema
from models.db.base import database
from models.queries.search import index_more
from models.tables.order import STATUSES
from models.tables.order_counts import BUCKET
from tests.applications import with_settings
from tests.databases import settings_of
from tests.support import ROOT, DemoApi, DemoService, through_flask

pytestmark = [pytest.mark.sqlite, pytest.mark.usefixtures("demo")]  # a release's database is its demo's

DATA = ROOT / "tests" / "data"
RELEASES = sorted(path.stem for path in DATA.glob("*.sql"))
CONVERTED = {
    *(("history", "why"), ("payment_exception", "detail")),  # tests/blueprints/console/test_upgraded_reasons.py
    *(("operator", "role"), ("order", "due_at")),
}
STEPS = sorted(path.stem for path in schema.MIGRATIONS.glob("[0-9]*.py"))


@pytest.fixture(scope="module", params=RELEASES)
def release(request):
    """The release that wrote the database."""
    return request.param


@pytest.fixture(scope="module")
def released(release):
    """The database as that release left it."""
    with closing(sqlite3.connect(":memory:")) as loaded:
        loaded.executescript((DATA / f"{release}.sql").read_text("utf-8"))
        yield loaded


@pytest.fixture(scope="module")
def then(released):
    """`then(sql, *values)`: the result of a query on the database as that release left it."""
    return lambda sql, *values: released.execute(sql, values).fetchall()


@pytest.fixture(scope="module")
def lacking(then):
    """The expected output of `db migrate`: the steps that the release did not have."""
    had = {name for (name,) in then("SELECT name FROM schema_migration")}
    return [f"applied: {name}" for name in STEPS if name not in had] or ["the database is up to date"]


@pytest.fixture
def old(released, release, tmp_path):
    """The instance folder of a service of that release."""
    return _service_of(released, release, tmp_path / "old")


def _service_of(released, release, folder):
    folder.mkdir()
    with closing(sqlite3.connect(folder / "orders.sqlite")) as copy:
        released.backup(copy)
    shutil.copy(DATA / f"{release}.key", folder / "vault.key")
    return folder


@pytest.fixture(scope="module")
def upgraded(any_database, released, release, lacking, tmp_path_factory):
    """Its instance folder once the database is upgraded, to be copied."""
    folder = _service_of(released, release, tmp_path_factory.mktemp("upgraded") / "instance")
    assert DemoService(folder).flask("db", "migrate").stdout.splitlines() == lacking
    return folder


@pytest.fixture
def instance(upgraded, tmp_path):
    return shutil.copytree(upgraded, tmp_path / "instance")


@pytest.fixture
def listed_then(then):
    """`listed_then(condition, *values)`: the numbers of these orders, newest first, as that release listed them."""

    def read(condition, *values):
        query = f'SELECT order_no FROM "order" WHERE {condition} ORDER BY createtime DESC, id DESC'
        return [row[0] for row in then(query, *values)]

    return read


def _numbers(page):
    return [order["order_no"] for order in page["list"]]


def _totals(api):
    return {status: api.listed(status=status).data["total"] for status in STATUSES}


def now(sql, *values):
    """The result of a query on the service's database."""
    return database.execute_sql(sql, values).fetchall()


def _schema():
    """SQLite's definitions of tables, columns, indexes, foreign keys and triggers.

    Foreign keys are among the facts only: SQLite writes those of an added column into the text of that column.
    """
    key = r'(, FOREIGN KEY \("\w+"\))? REFERENCES "\w+" \("id"\)'
    texts = {
        (kind, name): sql and re.sub(key, "", re.sub(r"\s+", " ", sql))
        for kind, name, sql in now("SELECT type, name, sql FROM sqlite_master")
    }
    facts = {}
    for name in [name for kind, name in texts if kind == "table"]:
        facts[name, "columns"] = {row[1:] for row in now(f'PRAGMA table_info("{name}")')}
        facts[name, "references"] = {row[2:] for row in now(f'PRAGMA foreign_key_list("{name}")')}
        facts[name, "indexes"] = {row[1:] for row in now(f'PRAGMA index_list("{name}")')}
    for name in [name for kind, name in texts if kind == "index"]:
        facts[name, "columns"] = {(row[0], *row[2:]) for row in now(f'PRAGMA index_xinfo("{name}")')}
    return texts, facts


def _start():
    """The initial content of a database: its schema, its migrations, and the number of rows that every database has."""
    steps = now("SELECT name FROM schema_migration")
    counts = [now(f"SELECT COUNT(*) FROM {table}") for table in ("search_progress", "revision", "webhook_key")]
    return *_schema(), steps, counts, now("SELECT * FROM order_search_config")


def test_each_new_step_has_a_number_of_its_own():
    numbers = Counter(step[:4] for step in STEPS)
    assert {number for number, count in numbers.items() if count > 1} == {"0018", "0024"}


def test_the_upgraded_schema_is_that_of_a_new_database_and_the_file_is_intact(app, tmp_path):
    assert now("PRAGMA integrity_check") == [("ok",)]
    assert now("PRAGMA foreign_key_check") == []
    assert now("PRAGMA foreign_keys") == [(1,)]
    upgraded = _start()
    database.close()
    create_app(settings_of(tmp_path / "new"))
    assert upgraded == _start()


def test_every_row_is_kept_or_converted(app, then):
    real = "type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'"
    tables = {row[0] for row in then(f"SELECT name FROM sqlite_master WHERE {real}")}
    assert len(tables) > 10
    for table in tables - {"schema_migration"}:
        names = [name for (name,) in then("SELECT name FROM pragma_table_info(?)", table)]
        columns = ", ".join(f'"{name}"' for name in names if (table, name) not in CONVERTED)
        query = f'SELECT {columns} FROM "{table}" ORDER BY 1, 2'
        assert now(query) == then(query), table
    if "operator" in tables:  # operators become administrators
        roles = {
            name: role.replace("operator", "administrator") for name, role in then("SELECT name, role FROM operator")
        }
        assert dict(now("SELECT name, role FROM operator")) == roles
    numbered = "SELECT id, ROW_NUMBER() OVER (PARTITION BY account_id ORDER BY id) FROM entry ORDER BY id"
    assert now("SELECT id, number FROM entry ORDER BY id") == then(numbered)
    assert now("SELECT MAX(number) FROM entry")[0][0] > 10


def test_deposits_that_nothing_waited_for_are_due_again(app, then):
    lost = """order_type = 1 AND due_at IS NULL AND (status = 'confirmed' OR (status IN ('pending', 'paid')
    AND id NOT IN (SELECT order_id FROM payment_exception WHERE resolution IS NULL)))"""
    days = dict(then("SELECT id, settlement_days FROM channel"))
    due = {
        number: at + (86_400 * days[channel] if status == "confirmed" else 0)
        for number, at, channel, status in then(
            f'SELECT order_no, updatetime, channel_id, status FROM "order" WHERE {lost}'
        )
    }
    assert due
    before = dict(then('SELECT order_no, due_at FROM "order"'))
    assert dict(now('SELECT order_no, due_at FROM "order"')) == before | due


def test_the_ledger_passes_its_check_and_old_entries_are_protected_like_new_ones(flask_json):
    assert not any(flask_json("ledger", "verify").values())
    for statement in ("UPDATE entry SET hash = ''", "UPDATE entry SET number = 0 - number", "DELETE FROM entry"):
        with pytest.raises(DatabaseError, match="append-only"):
            database.execute_sql(statement)


def test_orders_are_listed_in_the_same_order_and_counted(api, other, listed_then):
    for merchant, client in enumerate((api, other), 1):
        numbers = listed_then("merchant_id = ?", merchant)
        assert len(numbers) > 5
        pages = [client.listed(limit=5, page=page).data for page in range(1, len(numbers) // 5 + 2)]
        assert [number for page in pages for number in _numbers(page)] == numbers
        assert {page["total"] for page in pages} == {len(numbers)}
    _check_counts()


def _check_counts():
    counted = now(
        "SELECT merchant_id, order_type, status, bucket, count FROM tally WHERE count > 0 ORDER BY 1, 2, 3, 4"
    )
    assert counted == now(
        f'SELECT merchant_id, order_type, status, seq / {BUCKET}, COUNT(*) FROM "order" GROUP BY 1, 2, 3, 4'
        " ORDER BY 1, 2, 3, 4"
    )


def test_a_part_of_a_number_finds_the_same_orders_however_far_the_index_is(api, listed_then, then):
    has_index = then("SELECT 1 FROM sqlite_master WHERE name = 'search_progress'")  # the first release had none
    since = "(SELECT order_id FROM search_progress)" if has_index else "0"
    unindexed = then(f'SELECT COUNT(*) FROM "order" WHERE id > {since}')[0][0]
    for most in (0, 40, 1_000):
        assert index_more(most) == min(most, unindexed)
        unindexed -= min(most, unindexed)
        for text in ("2026-100", "SEED-000001", "百分100%_", "AYOUT", "10", "never"):
            numbers = listed_then("merchant_id = 1 AND instr(lower(merchant_order_no), lower(?))", text)
            page = api.listed(limit=100, merchant_order_no=text).data
            assert (page["total"], _numbers(page)) == (len(numbers), numbers), text
            assert bool(numbers) is (text != "never")


def test_new_and_older_orders_continue(api, flask, listed_then, then):
    totals = _totals(api)
    order_no = api.buy("1.00", merchant_order_no="after the upgrade").data["order_no"]
    assert _numbers(api.listed(limit=100).data) == [order_no, *listed_then("merchant_id = 1")]
    assert _totals(api) == totals | {"pending": totals["pending"] + 1}
    ((older, yuan),) = then("SELECT order_no, amount / 100 FROM 'order' WHERE merchant_order_no = 'shop/2026-1004'")
    assert "李四" in flask("order", "show", older, "--reveal").output  # encrypted columns can still be decrypted
    flask("order", "paid", older, "--amount", yuan, "--reference", "BANK-10")
    assert api.status(older) == "completed"
    assert _totals(api) == totals | {"completed": totals["completed"] + 1}


MANY_MORE = """
CREATE TEMPORARY TABLE more AS
    WITH RECURSIVE copy (number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM copy WHERE number < 1500)
    SELECT "order".*, number FROM "order", copy
    WHERE merchant_id = 1 AND order_type = 1 AND status IN ('pending', 'cancelled');
UPDATE more SET id = id + 1000 * number, order_no = printf('%04d', number) || substr(order_no, 5);
ALTER TABLE more DROP COLUMN number;
INSERT INTO "order" SELECT * FROM more;
CREATE TEMPORARY TABLE copy AS
    WITH RECURSIVE copy (number) AS (SELECT 2000000 UNION ALL SELECT number + 1 FROM copy WHERE number < 2005999)
    SELECT number FROM copy;
INSERT INTO posting SELECT number, NULL, 'adjustment', 'operator', 'to and fro', number FROM copy;
INSERT INTO entry SELECT 2 * number, number, 1, 1 - 2 * (number % 2) FROM copy;
INSERT INTO entry SELECT 2 * number + 1, number, 3, 2 * (number % 2) - 1 FROM copy;
"""


@pytest.mark.parametrize("release", ["0.1.0"], indirect=True)  # later ones counted orders, or chained entries
def test_many_orders_are_counted_in_buckets_and_many_entries_chained_part_by_part(old):
    service = DemoService(old)
    with closing(sqlite3.connect(old / "orders.sqlite")) as before:
        before.executescript(MANY_MORE)
        of_status = "SELECT status, COUNT(*) FROM 'order' WHERE merchant_id = 1 GROUP BY 1"
        orders = before.execute(of_status).fetchall()
        entries = before.execute("SELECT account_id, COUNT(*) FROM entry GROUP BY 1").fetchall()
    assert sum(count for _, count in entries) > 12_000
    service.flask("db", "migrate")
    assert not any(json.loads(service.flask("ledger", "verify", "--json").stdout).values())
    app = with_settings(settings_of(old, demo=True))
    api = DemoApi(through_flask(app.test_client()))
    assert now("SELECT id, entries FROM ledger_account WHERE entries > 0 ORDER BY 1") == entries
    assert now("SELECT MAX(seq) FROM 'order' WHERE merchant_id = 1")[0][0] > 2 * BUCKET
    _check_counts()
    for status, count in orders:
        last = api.listed(status=status, limit=50, page=(count + 49) // 50).data
        of_status = "SELECT order_no FROM 'order' WHERE merchant_id = 1 AND status = ? ORDER BY createtime, id"
        assert (last["total"], _numbers(last)[-1]) == (count, now(of_status, status)[0][0])


def test_a_database_can_be_copied_before_it_is_upgraded(old, tmp_path, then):
    DemoService(old).flask("db", "backup", str(tmp_path / "copy.sqlite"))
    with closing(sqlite3.connect(tmp_path / "copy.sqlite")) as copy:
        assert copy.execute("SELECT * FROM 'order'").fetchall() == then("SELECT * FROM 'order'")


@pytest.mark.usefixtures("slow")
def test_a_service_starts_on_an_upgraded_database_only(old, lacking):
    service = DemoService(old)
    if len(lacking) > 1:
        assert "tillbook db migrate" in service.refused()
    assert service.flask("db", "migrate").stdout.splitlines() == lacking
    service.start()
    assert service.api.listed().data["total"] > 50
    assert service.stop() == 0
