"""Open orders in a database of 0.3.0 continue after the upgrade, on SQLite and after `db copy` on Postgres."""

import shutil
import sqlite3
from contextlib import closing

import pytest

from models.db.base import database, open_database
from runtime.settings import Settings
from tests import applications, postgres
from tests.databases import disconnect
from tests.support import ROOT, Receiver

pytestmark = [pytest.mark.sqlite, pytest.mark.usefixtures("slow", "demo")]

DATA = ROOT / "tests" / "data"
STOPPED = 1_795_327_900  # when the service of that release ended
# Further rows that this release would have written: two withdrawals in flight, a delayed deposit, exceptions.
UNDER_WAY = f"""
CREATE TEMPORARY TABLE copy AS SELECT 77 AS id, 0 AS asks UNION SELECT 78, 1;
INSERT INTO "order" (id, order_no, merchant_id, seq, channel_id, account_id, order_type, status, merchant_order_no,
    customer_name, payment_method, amount, service_rate, service_amount, passage_rate, passage_amount, deposit_rate,
    deposit_amount, channel_amount, merchant_actual_amount, opened, channel_reference, expires_at, due_at, asks,
    createtime, updatetime)
    SELECT copy.id, '2026112200000000000000' || copy.id, merchant_id, seq + copy.id - 75, channel_id, account_id,
    order_type, 'confirmed', 'in-flight-' || copy.id, customer_name, payment_method, amount, service_rate,
    service_amount, passage_rate, passage_amount, deposit_rate, deposit_amount, channel_amount, merchant_actual_amount,
    opened, channel_reference, expires_at, {STOPPED} + 5, copy.asks, {STOPPED}, {STOPPED}
    FROM "order", copy WHERE "order".id = 67;
INSERT INTO history (order_id, "before", "after", who, why, at)
    SELECT id, '', 'pending', 'merchant', 'created', {STOPPED} FROM copy
    UNION ALL SELECT id, 'pending', 'confirmed', 'operator', 'accepted', {STOPPED} FROM copy;
INSERT INTO posting SELECT 100 + id, id, 'hold', 'merchant', '', {STOPPED} FROM copy;
INSERT INTO entry (posting_id, account_id, amount)
    SELECT 100 + copy.id, account_id, amount FROM entry, copy WHERE posting_id = 67;
UPDATE ledger_account SET balance = (SELECT SUM(amount) FROM entry WHERE account_id = ledger_account.id)
    WHERE kind IN ('available', 'held') AND owner = 1;
UPDATE "order" SET due_at = {STOPPED} + 60 WHERE id = 52;
INSERT INTO payment_exception (order_id, kind, amount, reference, detail, createtime) VALUES
    (62, 'late_payment', 2050, 'LATE-1', 'paid after it was cancelled', {STOPPED}),
    (73, 'payout_conflict', 100, 'OUT-1', 'paid out although cancelled', {STOPPED}),
    (66, 'reversed', 5000, 'BACK-1', 'failed although completed', {STOPPED}),
    (70, 'unknown_outcome', 0, '', 'the sandbox did not answer', {STOPPED});
INSERT INTO history (order_id, "before", "after", who, why, at)
    SELECT order_id, status, status, 'service', 'exception ' || kind || ': ' || detail, {STOPPED}
    FROM payment_exception JOIN "order" ON "order".id = order_id WHERE payment_exception.createtime = {STOPPED};
"""


@pytest.fixture
def instance(tmp_path):
    """The instance folder of a service of that release, with open orders."""
    folder = tmp_path / "instance"
    folder.mkdir()
    with closing(sqlite3.connect(folder / "orders.sqlite")) as old:
        old.executescript((DATA / "0.3.0.sql").read_text("utf-8"))
        old.executescript(UNDER_WAY)
        old.commit()
    shutil.copy(DATA / "0.3.0.key", folder / "vault.key")
    return folder


NEEDS_POSTGRES = pytest.mark.skipif(not postgres.IS_INSTALLED, reason="the programs of Postgres are not installed")


@pytest.fixture(params=["SQLite", pytest.param("Postgres", marks=NEEDS_POSTGRES)])
def moved_to(request):
    """The address of the Postgres that the upgraded database is copied to; "" to stay on SQLite."""
    if request.param == "SQLite":
        yield ""
        return
    name = postgres.cluster().create()
    yield postgres.cluster().url(name)
    postgres.cluster().drop(name)


@pytest.fixture
def app(app, moved_to, instance):
    """The application, once the database is upgraded."""
    run = app.test_cli_runner().invoke
    assert run(args=["db", "migrate"]).exit_code == 0
    if moved_to:
        assert run(args=["db", "copy", moved_to]).exit_code == 0
        app = applications.with_settings(Settings(instance=instance, demo=True, database_url=moved_to))
    assert database.is_shared is bool(moved_to)
    yield app
    disconnect()
    open_database(instance / "orders.sqlite")


@pytest.fixture
def stopped(time_machine, due):
    """The clock at the end of the old service; `stopped(60)` does the work that is due a minute later."""

    def at(seconds):
        time_machine.move_to(STOPPED + seconds, tick=False)
        due.orders()

    time_machine.move_to(STOPPED, tick=False)
    return at


def test_its_orders_continue_its_exceptions_are_resolved_and_its_callbacks_delivered(
    app, stopped, due, api, flask, flask_json, exceptions, web_server
):
    def number(row):
        return database.execute_sql(f'SELECT order_no FROM "order" WHERE id = {row}').fetchone()[0]

    def statuses(*rows):
        return {row: flask_json("order", "show", number(row))["status"] for row in rows}

    unsent = "SELECT webhook_id, body FROM callback WHERE state = 'pending' AND merchant_id = 3"
    callbacks = [(name, body.encode()) for name, body in database.execute_sql(unsent).fetchall()]
    assert len(callbacks) == 4
    shop = Receiver(web_server, "/shop", flask_json("merchant", "show", "shop")["callback_secret"])
    flask("merchant", "set", "shop", "--callback-url", shop.url)

    ways = {62: "--credit", 66: "--credit", 68: "--refund", 73: "--complete", 75: "--credit"}
    assert set(exceptions()) == {number(row) for row in (*ways, 70)}
    for row, way in ways.items():
        named = ("--reference", "BACK-1") if way == "--refund" else ()
        flask("order", "settle", number(row), way, *named)
    flask("order", "paid", number(9), "--reference", "BANK-1")  # claimed
    flask("order", "paid", number(65), "--reference", "BANK-2")
    flask("order", "paid", number(74), "--reference", "BANK-3")  # an approved withdrawal
    flask("order", "accept", number(67))
    api.play(number(63), "success")
    for seconds in range(0, 65, 5):
        stopped(seconds)
    assert exceptions() == {number(76): "unknown_outcome"}  # the channel responded about the other one
    for seconds in (120, 600, 900, 1_000):
        stopped(seconds)
    due.callbacks()
    ended = dict.fromkeys((9, 52, 63, 65, 67, 74, 77, 78), "completed") | {64: "cancelled"}
    assert statuses(*ended) == ended
    resolved = {62: "cancelled", 66: "completed", 68: "cancelled", 73: "cancelled"}
    assert statuses(*resolved) == resolved
    received = [(got.webhook_id, got.body) for got in shop.got]
    assert sorted(each for each in received if each in callbacks) == sorted(callbacks)  # unchanged, each once
    assert all(got.event for got in shop.got)
    assert database.execute_sql(unsent).fetchall() == []
    flask("ledger", "verify")
