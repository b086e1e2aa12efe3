"""No statement of the service reads more with more orders (the rule: `tests.plans.unbounded`).

The test excludes statements that read everything intentionally: `ledger verify`, `reconcile`, `db`, `vault rotate`,
`seed`.
"""

import inspect
import io
import re
import sqlite3
from contextlib import closing

import click
import pytest
from flask import request, request_started

from models.queries import search
from models.tables.operator import Session
from runtime import clock
from services.console import privacy, statistics
from services.console import search as search_console
from services.sandbox import seeding
from services.security import replay
from tests import all_interfaces, applications, databases
from tests.blueprints.console.acting import LATER
from tests.plans import Heard, findings, in_short, in_triggers, plan
from tests.services import walks
from tests.support import completed, free_port

pytestmark = pytest.mark.sqlite

ORDERS = 3_000
RARE, SHORT, FREQUENT = "SEED-0000042", "SE", "SEED"
READS_EVERYTHING = {
    ("ledger", "remove-sandbox"),
    ("ledger", "verify"),
    ("db", "backup"),
    ("db", "copy"),
    ("db", "restore"),
    ("db", "migrate"),
    ("vault", "rotate"),
    ("privacy", "export"),
    ("privacy", "erase"),
    ("seed",),
    ("reconcile",),
}
# They run no query, or only one for a merchant by its key.
NO_QUERY = {("merchant", "test-callback"), ("serve",), ("demo-curl",), ("run",), ("shell",), ("routes",)}


@pytest.fixture
def settings_of_app():
    rates = ("requests_per_second", "refused_per_minute", "short_searches")
    return dict.fromkeys(rates, 1_000_000) | {"port": free_port()}


@pytest.fixture(scope="module")
def months(seeded_demo, tmp_path_factory):
    """An instance folder with months of orders, to be copied."""
    folder = databases.copied(seeded_demo, tmp_path_factory.mktemp("months") / "instance")
    app = applications.with_settings(databases.settings_of(folder, demo=True))
    assert app.test_cli_runner().invoke(args=["seed", "--orders", str(ORDERS)]).exit_code == 0
    databases.close()
    return folder


@pytest.fixture
def instance(months, demo, tmp_path):
    return databases.copied(months, tmp_path / "instance")


@pytest.fixture
def raw(app, instance):
    """A connection to that database, for which SQLite has no statistics."""
    # Without a statement cache, because a cached plan is not made again when an index is dropped.
    with closing(sqlite3.connect(instance / "orders.sqlite", cached_statements=0)) as connection:
        assert not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'sqlite_stat1'").fetchall()
        yield connection


def nothing(found):
    """Fail with everything that was found."""
    assert not found, "\n".join([f"{len(found)} plans that read more, the more orders there are", *found])


def test_the_lives_of_orders_read_nothing_that_grows(raw, world):
    every = [each for each in vars(walks).values() if inspect.isfunction(each)]
    lives = [each for each in every if each not in (walks.claim, walks.played)]
    lives += [walks.played(outcome) for outcome in ("success", "fail", "silent", "duplicate", "late", "timeout")]
    with Heard() as heard:
        for walk in lives:
            walk(world)
            world.later(0)
            world.flask("channel", "set", 2, "--settlement-days", 0, "--auto-accept-max", 0, "--config", "open=accept")
        world.later(100_000, times=3)
    nothing(findings(raw, heard.statements))


@pytest.fixture
def requested(app):
    """The endpoints that were requested."""
    endpoints = set()

    def note(sender, **more):
        endpoints.add(request.endpoint)

    with request_started.connected_to(note, app):
        yield endpoints


def test_requests_read_nothing_that_grows(raw, app, api, other, http, web_server, flask, flask_json, requested):
    with Heard() as heard:
        all_interfaces.create_orders_of_all_kinds(api)
        all_interfaces.be_refused(api, other, flask)
        all_interfaces.open_all_pages(api, http)
        all_interfaces.list_by_every_filter(api)
        all_interfaces.refund(api)
        all_interfaces.be_an_epay_shop(api, http, web_server, flask_json)
    all_interfaces.use_the_simulator(api, http)  # the demo's own, which never has months of orders
    without_database = {rule.endpoint for rule in app.url_map.iter_rules() if rule.endpoint.startswith("guides.")}
    assert requested | {"pages.static"} | without_database == {rule.endpoint for rule in app.url_map.iter_rules()}
    nothing(findings(raw, heard.statements))


@pytest.mark.usefixtures("slow")
def test_the_consoles_lists_read_nothing_that_grows(raw, app, api, flask):
    seeding.seed_operators()
    for _ in range(3):
        completed(api)
        api.notice(api.buy().data["order_no"], 9_900)
    with Heard() as heard:
        all_interfaces.look_through_all_lists(app.test_client())
    nothing(findings(raw, heard.statements))


def test_the_consoles_search_reads_nothing_that_grows(raw, api, claimed):
    order_no = completed(api)
    claimed("12.00", customer_name="张三")
    with Heard() as heard:
        for text in (order_no, order_no[-4:], RARE, "1234.00", "no such thing"):
            search_console.find(text, 123_400, payers=True)
        search_console.find("1234 19:15", 123_400, clock.now())
    nothing(findings(raw, heard.statements))


def test_bulk_actions_and_uploads_read_nothing_that_grows(raw, app, api, flask):
    seeding.seed_operators()
    number = api.sell("10.00", channel=3).data["order_no"]
    flask("order", "accept", number)
    deposit = api.buy("12.00", 3).data["order_no"]
    client = app.test_client()
    all_interfaces.sign_in(client)
    Session.update(confirmtime=LATER).execute()
    token = re.search(r'name="csrf_token"[^>]*value="([^"]+)"', client.get("/console/password").text)[1]

    def upload(path, text, **fields):
        form = {"csrf_token": token, "file": (io.BytesIO(text.encode()), "a.csv"), **fields}
        return client.post(f"/console/{path}/upload", data=form)

    with Heard() as heard:
        for path in ("payouts/approve", "payouts/reject", "payouts/sent", "payouts/batch"):
            assert client.get(f"/console/{path}?order_no={number}").status_code == 200
        for path in ("claims/confirm", "claims/not-received"):
            assert client.get(f"/console/{path}?order_no={deposit}").status_code == 200
        for path in (
            "resend-all",
            "resend-all?flt_state=dead&flt_event=order.paid&flt_merchant=demo",
            "resend?webhook_id=x",
        ):
            assert client.get(f"/console/callbacks/{path}").status_code == 200
        batch = client.post(
            "/console/payouts/batch", data={"csrf_token": token, "order_no": number, "template": "generic"}
        )
        assert batch.location == "/console/batch/1"
        for path in ("batch/1", "batches/", "payouts/next", "notifications/"):
            assert client.get(f"/console/{path}").status_code in (200, 302)
        for status in ("成功", "退票"):  # the second one contradicts what the first one recorded
            shown = upload("batch/1", f"编号,金额,状态,流水号\nP1-1,10.00,{status},R-1\n")
            row = re.search(r'name="row" value="([^"]+)"', shown.text)[1]
            recorded = client.post("/console/batch/1/result/upload", data={"csrf_token": token, "row": row})
            assert recorded.status_code == 200
        assert (
            upload(
                "claims", f"交易时间,流水号,收入金额,附言\n2026-11-25,R-2,12.00,{deposit} SHOP-1\n", channel=3
            ).status_code
            == 200
        )
    nothing(findings(raw, heard.statements))


def test_the_overview_and_the_metrics_read_nothing_that_grows(raw, app, api, http, flask, flask_json, monkeypatch):
    monkeypatch.setattr(statistics, "FRESH", -1)
    seeding.seed_operators()
    api.notice(api.buy().data["order_no"], 9_900)
    client = app.test_client()
    all_interfaces.sign_in(client)
    with Heard() as heard:
        for name in ("today", "7", "30", "90"):
            assert client.get(f"/console/?range={name}").status_code == 200
            completed(api)
        assert http("GET", "/metrics").status == 200
        assert flask_json("to-do")
    assert any("/ 3600" in sql for sql in heard.statements)
    assert any("LIMIT" in sql and 'SUM("found"."amount")' in sql for sql in heard.statements)
    nothing(findings(raw, heard.statements))


def test_a_short_or_frequent_part_of_a_number_is_searched_among_the_merchants_own(raw, api):
    with Heard() as heard:
        all_interfaces.list_by_every_filter(api, (SHORT, FREQUENT))
    nothing(findings(raw, heard.statements))
    reads = [line for sql, values in heard.statements.items() if " LIKE " in sql for line in plan(raw, sql, values)]
    assert all("merchant_id=?" in line for line in reads)


def test_a_rare_part_of_a_number_is_found_by_the_index(raw, api):
    api.buy(merchant_order_no="not indexed yet")
    with Heard() as heard:
        all_interfaces.list_by_every_filter(api, (RARE,))
    sought = {sql: plan(raw, sql, values) for sql, values in heard.statements.items() if " LIKE " in sql}
    assert any("MATCH" in sql for sql in heard.statements)
    nothing([in_short(sql, lines) for sql, lines in sought.items() if not any("rowid" in line for line in lines)])


def test_the_jobs_read_nothing_that_grows(raw, api, flask, due, shop, ahead, monkeypatch):
    flask("merchant", "set", "demo", "--events", "paid,confirmed")
    with Heard() as heard:
        for status in (500, 200, 410, 200):
            shop.answers(status)
            completed(api)
            due()
            ahead(10_000)
        api.sell("5.00")
        flask("channel", "set", 2, "--auto-accept-max", 1000, "--settlement-days", 1)
        api.sell("1.00")
        order_no = completed(api)
        api.buy(customer_name="张三")
        for _ in range(4):
            due()
            ahead(100_000)
        replay.purge()
        monkeypatch.setattr(privacy, "LONGEST", 60)
        assert privacy.run(1) == 1
        assert search.index_more(100)
    assert api.status(order_no) == "completed"
    assert len(shop.got) > 4
    nothing(findings(raw, heard.statements))


def commands_of(group, *names):
    """The names of every command."""
    for name, command in group.commands.items():
        yield from commands_of(command, *names, name) if isinstance(command, click.Group) else [(*names, name)]


def test_commands_read_nothing_that_grows(raw, app, api, flask, flask_json):
    ran = set()

    def run(*arguments, **typed):
        ran.update((arguments[:1], arguments[:2]))
        flask(*arguments, **typed)

    with Heard() as heard:
        all_interfaces.give_every_command(run, api, flask_json)
    assert ran | READS_EVERYTHING | NO_QUERY >= set(commands_of(app.cli))
    nothing(findings(raw, heard.statements))


def test_triggers_read_nothing_that_grows(raw):
    statements = dict.fromkeys(in_triggers(raw), ())
    assert len(statements) > 5
    nothing(findings(raw, statements))


def test_without_an_index_the_statement_that_needs_it_is_found(raw, api, flask, flask_json):
    order_no = completed(api)
    with Heard() as heard:
        api.listed()
        flask("order", "show", order_no)
        flask("callback", "show", flask_json("callback", "list")[0]["id"])
    found = len(findings(raw, heard.statements))
    raw.execute("BEGIN")
    for index in ("order_seq", "order_order_no", "entry_posting_id", "callback_attempt_callback_id"):
        raw.execute(f"DROP INDEX {index}")
        before, found = found, len(findings(raw, heard.statements))
        assert found > before, index
    raw.rollback()
