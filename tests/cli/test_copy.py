"""`tillbook db copy`: from the SQLite file to Postgres, complete or not at all."""

import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from urllib.parse import quote

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from services.backups import copy_to_postgres
from tests import all_interfaces, postgres
from tests.refunds import allow, refunded
from tests.support import ROOT, Service, completed

pytestmark = [
    pytest.mark.sqlite,
    pytest.mark.skipif(not postgres.IS_INSTALLED, reason="the programs of Postgres are not installed"),
]


@pytest.fixture
def tables(postgres_url):
    """`tables()`: the tables of the target."""

    def read():
        with psycopg.connect(postgres_url) as connection:
            return [
                name for (name,) in connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
            ]

    return read


def test_everything_is_copied_and_the_service_continues_with_it(api, other, flask, due, rows, instance, postgres_url):
    all_interfaces.create_orders_of_all_kinds(api)
    other.buy(merchant_order_no="find me 找我")
    order_no = completed(api)
    allow()
    refund_no = refunded(api, completed(api), "40.00")
    open_one = refunded(api, completed(api), "30.00", "silent")
    due()
    before = rows()
    said = flask("db", "copy", postgres_url).stdout
    assert "ORDERS_DATABASE_URL" in said
    assert rows() == before  # the commands of this process use the unchanged file again
    moved = Service(instance, ORDERS_DATABASE_URL=postgres_url)
    # In its own process, because `api` continues with the file here.
    verify = [sys.executable, "-m", "flask", "ledger", "verify"]
    subprocess.run(verify, cwd=ROOT, env=moved.environ, check=True)
    moved.start()
    try:
        assert moved.api.detail(order_no=order_no).data == api.detail(order_no=order_no).data
        assert moved.api.listed().data == api.listed().data
        found = type(moved.api)(moved.api.send, "other").listed(merchant_order_no="ME 找")
        assert found.data["total"] == 1
        placed = moved.api.buy().data
        assert placed["order_no"] not in str(before)
        assert moved.api.sell("1.00").code == 1
        for number in (refund_no, open_one):
            by_number = {"refund_no": number}
            assert moved.api.call("refundQueryDetail", by_number).data == api.call("refundQueryDetail", by_number).data
        more = {"order_no": order_no, "cny_amount": "1.00", "merchant_refund_no": "after the copy"}
        assert moved.api.call("createRefund", more).code == 1
    finally:
        assert moved.stop() == 0


@pytest.mark.breaks_the_ledger
def test_a_copy_that_is_refused_leaves_the_target_as_it_is(api, refuses, instance, postgres_url, tables):
    completed(api)
    with closing(sqlite3.connect(instance / "orders.sqlite", isolation_level=None)) as books:
        books.execute("BEGIN IMMEDIATE")
        assert "stop the service" in refuses("db", "copy", postgres_url)
        books.execute("UPDATE ledger_account SET balance = balance + 1 WHERE kind = 'fees'")
        books.execute("COMMIT")
    assert "ledger check failed" in refuses("db", "copy", postgres_url)
    assert tables() == []
    with psycopg.connect(postgres_url) as connection:
        connection.execute("CREATE TABLE somebody_s (a int)")
    assert "not empty" in refuses("db", "copy", postgres_url)
    assert tables() == ["somebody_s"]
    assert "127.0.0.1" in refuses("db", "copy", "postgresql://orders@127.0.0.1:1/orders")


def test_a_character_that_postgres_can_not_store_is_replaced(flask, instance, postgres_url):
    with closing(sqlite3.connect(instance / "orders.sqlite", isolation_level=None)) as books:
        books.execute("UPDATE merchant SET name = 'a' || char(0) || 'bc'")
    flask("db", "copy", postgres_url)
    with psycopg.connect(postgres_url) as connection:
        assert connection.execute("SELECT DISTINCT name FROM merchant").fetchall() == [("a\ufffdbc",)]


def test_while_the_service_runs_it_is_refused_even_if_nothing_is_written(service, postgres_url, tables):
    done = service.flask("db", "copy", postgres_url, check=False)
    assert (done.returncode, "stop it first" in done.stderr) == (1, True)
    assert tables() == []


def test_a_long_comparison_on_one_side_does_not_end_the_others_transaction(api, postgres_url, tables):
    impatient = f"{postgres_url}&options={quote('-c idle_in_transaction_session_timeout=200')}"
    copy_to_postgres.copy(impatient, 2, lambda name, rows: time.sleep(0.5 if name == "merchant" else 0))
    assert "order" in tables()


def test_a_database_of_another_encoding_is_refused(refuses, postgres_url):
    name = f"{conninfo_to_dict(postgres_url)['dbname']}_latin"
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE template0 ENCODING LATIN1 LOCALE 'C'")
    try:
        assert "LATIN1" in refuses("db", "copy", postgres.cluster().url(name))
    finally:
        postgres.cluster().drop(name)
