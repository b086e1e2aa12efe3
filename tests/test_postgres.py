"""Two services on one Postgres, as on two hosts: they share the work, and neither counts anything twice."""

import json
import shutil
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import psycopg
import pyotp
import pytest
import requests
from cryptography.fernet import Fernet
from werkzeug import Response

from app import create_app
from models.db.base import database
from models.db.postgres import lock_key
from models.queries import search
from runtime.settings import Settings
from services.platform import storage_health
from tests import postgres
from tests.blueprints.console.reading import Shown
from tests.support import DemoApi, DemoService, Receiver, signed, through_http, until
from tests.test_process import BUY

pytestmark = pytest.mark.skipif(not postgres.IS_INSTALLED, reason="the programs of Postgres are not installed")

KEY = Fernet.generate_key().decode()
MANY = 60


@pytest.fixture
def host(tmp_path, postgres_url):
    """`host("a")`: a service with an instance folder of its own, on the one database."""
    started = []

    def make(name, **environ):
        common = {"ORDERS_DATABASE_URL": postgres_url, "ORDERS_VAULT_KEY": KEY, "ORDERS_REQUESTS_PER_SECOND": "1000000"}
        service = DemoService(Path(tmp_path / name), **common | environ)
        started.append(service)
        return service

    yield make
    for service in started:
        if service.process and service.process.poll() is None:
            service.kill()


@pytest.fixture
def both(host):
    """Two services on one database."""
    return host("a").start(), host("b").start()


@pytest.fixture
def ask(postgres_url):
    """`ask(sql)`: the rows of a query on the database itself."""
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        yield lambda sql: connection.execute(sql).fetchall()


@pytest.fixture
def shop(web_server, both):
    """The merchant's own HTTP server, which receives its callbacks."""
    receiver = Receiver(web_server, "/shop", "whsec_ZGVtby1jYWxsYmFjay1zZWNyZXQtMDAwMDAwMDAwMDA=")
    both[0].flask("merchant", "set", "demo", "--callback-url", receiver.url)
    return receiver


def client(service, key="demo"):
    """A merchant on a connection of its own."""
    return DemoApi(through_http(service.url), key)


def at_once(calls):
    """The results of simultaneous calls."""
    with ThreadPoolExecutor(16) as pool:
        return [future.result() for future in [pool.submit(call) for call in calls]]


def by_turns(both, times, call):
    """The results of simultaneous `call(service, number)`, half of them through each service."""
    return at_once([partial(call, both[number % 2], number) for number in range(times)])


def sound(service):
    """Check the ledger's integrity."""
    return service.flask("ledger", "verify").returncode == 0


def test_orders_created_through_both_simultaneously_are_numbered_without_a_gap_or_a_duplicate(both, ask):
    merchants = ("demo", "demo", "other")
    answers = by_turns(both, MANY, lambda service, number: client(service, merchants[number % 3]).buy())
    assert {answer.code for answer in answers} == {1}
    for (merchant,) in ask("SELECT id FROM merchant"):
        numbers = [seq for (seq,) in ask(f'SELECT seq FROM "order" WHERE merchant_id = {merchant} ORDER BY seq')]
        assert numbers == list(range(1, len(numbers) + 1))
    assert sum(client(both[1], key).listed(status="pending").data["total"] for key in ("demo", "other")) == MANY


def test_simultaneous_withdrawals_through_both_never_overdraw(both):
    answers = by_turns(both, 16, lambda service, _: client(service).sell("1000.00"))
    assert sorted({answer.code for answer in answers}) == [1, 40901]
    assert [answer.code for answer in answers].count(1) == 9  # of 10000.00, each with its fee
    assert sound(both[0])


def test_a_nonce_counts_once_for_both_also_that_of_a_refused_order(both):
    for endpoint, fields in [("createOrder", BUY), ("orderQueryList", {})] * 5:
        sent = endpoint, json.dumps(signed(endpoint, fields)).encode()
        answers = by_turns(both, 6, lambda service, _, sent=sent: client(service).post(*sent))
        assert sorted(answer.code for answer in answers) == [1] + [40104] * 5
    body = json.dumps(signed("createOrder", BUY | {"cny_amount": "0.001"})).encode()
    assert [client(service).post("createOrder", body).code for service in (*both, *both)] == [42200] + [40104] * 3


def test_an_idempotency_key_gives_one_order_for_both(both):
    for number in range(5):
        key = {"Idempotency-Key": f"key-{number}"}
        answers = by_turns(both, 6, lambda service, _, key=key: client(service).buy(headers=key))
        assert {answer.code for answer in answers} <= {1, 40902}
        again = [client(service).buy(headers=key) for service in both]
        placed = {answer.data["order_no"] for answer in (*answers, *again) if answer.code == 1}
        assert len(placed) == 1
        assert [answer.code for answer in again] == [1, 1]
    assert client(both[0]).listed().data["total"] == 5


def test_each_callback_is_delivered_once_while_both_run(both, shop, ask):
    by_turns(both, 40, lambda service, _: service.api.play(client(service).buy().data["order_no"], "success"))
    until(lambda: len(shop.got) >= 40)
    time.sleep(2)
    assert len({got.webhook_id for got in shop.got}) == len(shop.got) == 40
    assert ask("SELECT DISTINCT state, attempts FROM callback") == [("delivered", 1)]
    assert sound(both[1])


def test_the_other_host_continues_the_work_of_a_killed_one(both, shop, ask):
    go_on, slow = threading.Event(), True

    def hang(request):
        if slow:
            go_on.wait(30)
        return Response("thank you")

    shop.answer = hang
    first, second = both
    second.kill()
    first.api.play(client(first).buy().data["order_no"], "success")
    until(lambda: shop.got)
    first.kill()
    slow = False
    go_on.set()
    second.start()
    time.sleep(1)
    assert len(shop.got) == 1  # it belongs to the first one until its lease expires
    ask("UPDATE callback SET due_at = due_at - 60 RETURNING id")
    until(lambda: ask("SELECT state FROM callback") == [("delivered",)])
    assert len({got.webhook_id for got in shop.got}) == 1
    assert sound(second)


def test_codes_of_a_second_factor_are_limited_for_both_together(both):
    """Otherwise someone with an operator's password could try as many codes at each host."""

    def fill(service, browser, path, **given):
        """Send a form of the console with its hidden fields."""
        url = f"{service.url}/console/{path}"
        hidden = Shown(browser.get(url, timeout=20).text).fields
        given = {"csrf_token": hidden["csrf_token"], "secret": hidden.get("secret", "")} | given
        if "code" in given and given["secret"]:
            given["code"] = pyotp.TOTP(given["secret"]).now()
        return browser.post(url, data=given, timeout=20, allow_redirects=False).status_code

    def signing_in(service):
        browser = requests.Session()
        assert fill(service, browser, "login", name="viewer", password="viewer-password") == 302
        return browser

    owner = signing_in(both[0])
    assert fill(both[0], owner, "factor", code="of the app", password="viewer-password") == 200
    pairs = [(both[at % 2], signing_in(both[at % 2])) for at in range(16)]
    tried = at_once([partial(fill, *pair, "login/code", code=f"{at:06}") for at, pair in enumerate(pairs)])
    assert sorted(tried) == [401] * 10 + [429] * 6


def test_a_merchant_disabled_on_one_host_is_refused_on_the_other(both):
    assert [client(service).listed().code for service in both] == [1, 1]
    both[0].flask("merchant", "set", "demo", "--disabled")
    until(lambda: [client(service).listed().code for service in both] == [40101, 40101])
    both[1].flask("merchant", "set", "demo", "--enabled")
    until(lambda: [client(service).listed().code for service in both] == [1, 1])


def test_while_postgres_is_down_each_is_50300_and_afterwards_all_continues(both, ask):
    stop, codes, placed = threading.Event(), set(), []

    def go_on_creating(service):
        while not stop.is_set():
            answer = client(service).buy()
            codes.add(answer.code)
            if answer.code == 1:
                placed.append(answer.data["order_no"])

    with ThreadPoolExecutor(4) as pool:
        calls = [pool.submit(go_on_creating, service) for service in (*both, *both)]
        try:
            until(lambda: len(placed) > 5)
            postgres.cluster().stop()
            until(lambda: 50300 in codes)
            until(lambda: both[0].api.send("GET", "/healthz").status == 503)
            postgres.cluster().start()
            before = len(placed)
            until(lambda: len(placed) > before + 5)
        finally:
            stop.set()
        for call in calls:
            call.result(20)
    assert codes == {1, 50300}
    listed = [client(both[0]).detail(order_no=number).code for number in placed]
    assert set(listed) == {1}  # every confirmed order is listed
    assert sound(both[0])


def test_a_part_of_a_number_is_found_whichever_host_created_and_indexed_the_order(both, ask):
    by_turns(both, MANY, lambda service, number: client(service).buy(merchant_order_no=f"单号-{number:04d}-x"))
    until(lambda: ask('SELECT order_id - (SELECT MAX(id) FROM "order") FROM search_progress') == [(0,)])
    assert ask("SELECT COUNT(*) FROM order_search") == [(MANY,)]
    assert client(both[0]).listed(merchant_order_no="单号-0042").data["total"] == 1
    assert client(both[1]).listed(merchant_order_no="-00").data["total"] == MANY
    assert client(both[1]).listed(merchant_order_no="42-X").data["total"] == 1


def test_a_locked_balance_of_one_merchant_delays_no_other_merchant(host, postgres_url, ask):
    service = host("a").start()
    payout, deposit = client(service).sell(channel=3).data["order_no"], client(service, "other").buy().data["order_no"]
    service.flask("order", "accept", payout)
    with psycopg.connect(postgres_url) as held_up, ThreadPoolExecutor() as pool:
        held_up.execute("SELECT 1 FROM ledger_account WHERE kind = 'held' ORDER BY owner FOR UPDATE")
        paid = pool.submit(service.flask, "order", "paid", payout)
        until(lambda: ask("SELECT 1 FROM pg_locks WHERE NOT granted"))
        client(service, "other").play(deposit, "success")
        assert client(service, "other").status(deposit) == "completed"
        assert not paid.done()
        held_up.rollback()
        paid.result(20)
    assert client(service).status(payout) == "completed"


def test_withdrawals_of_one_merchant_that_wait_leave_connections_to_the_others(host, postgres_url, ask):
    service = host("a", ORDERS_DATABASE_CONNECTIONS="3").start()
    with psycopg.connect(postgres_url) as held_up, ThreadPoolExecutor() as pool:
        held_up.execute("SELECT 1 FROM ledger_account WHERE kind = 'held' ORDER BY owner FOR UPDATE")
        waiting = [pool.submit(client(service).sell, "1.00") for _ in range(5)]
        until(lambda: ask("SELECT 1 FROM pg_locks WHERE NOT granted"))
        assert [client(service, "other").buy().code for _ in range(3)] == [1] * 3
        assert not any(call.done() for call in waiting)
        held_up.rollback()
        assert {call.result(20).code for call in waiting} == {1}
    assert sound(service)


def test_a_request_that_waits_too_long_for_its_turn_is_50300_without_an_order(host, postgres_url, ask):
    service = host("a").start()
    with psycopg.connect(postgres_url) as held_up:
        held_up.execute("SELECT 1 FROM ledger_account WHERE kind = 'held' ORDER BY owner FOR UPDATE")
        answers = at_once([client(service).sell] * 4)
    assert {(answer.status, answer.code) for answer in answers} == {(503, 50300)}
    assert client(service).listed().data["total"] == 0
    assert client(service).sell().code == 1


def test_locked_orders_of_one_merchant_delay_no_other_merchant(host, postgres_url, ask):
    service = host("a", ORDERS_DATABASE_CONNECTIONS="4").start()
    ((demo,),) = ask("SELECT id FROM merchant WHERE key = 'demo'")
    with psycopg.connect(postgres_url) as held_up, ThreadPoolExecutor(40) as pool:
        held_up.execute("SELECT pg_advisory_xact_lock(%s, %s)", (lock_key("numbers"), demo))
        waiting = [pool.submit(client(service).buy) for _ in range(40)]
        until(lambda: ask("SELECT 1 FROM pg_locks WHERE NOT granted"))
        assert [client(service, "other").buy().code for _ in range(10)] == [1] * 10
        assert sum(not call.done() for call in waiting) > 20
        assert client(service).send("GET", "/healthz").status == 200
        held_up.rollback()
        assert {call.result(20).code for call in waiting} == {1, 50300}  # the latter for more than may wait
    assert client(service).buy().code == 1


def test_a_nonce_of_an_order_that_could_not_be_stored_is_used_for_both(both, postgres_url, ask):
    ((demo,),) = ask("SELECT id FROM merchant WHERE key = 'demo'")
    body = json.dumps(signed("createOrder", BUY)).encode()
    with psycopg.connect(postgres_url) as held_up:
        held_up.execute("SELECT pg_advisory_xact_lock(%s, %s)", (lock_key("numbers"), demo))
        assert client(both[0]).post("createOrder", body).code == 50300
    assert client(both[1]).post("createOrder", body).code == 40104
    assert client(both[1]).listed().data["total"] == 0


def test_an_uncommitted_order_delays_the_search_index_and_no_other_order(host, postgres_url, ask):
    service = host("a")
    service.flask("seed", "--orders", "5")
    ask("WITH emptied AS (DELETE FROM order_search) UPDATE search_progress SET order_id = 0 RETURNING 1")
    with psycopg.connect(postgres_url) as hanging:
        hanging.execute("SELECT pg_advisory_xact_lock_shared(%s, 0)", (lock_key("orders"),))
        create_app(Settings(instance=service.instance, database_url=postgres_url, vault_key=KEY))
        assert search.index_more(100) == 0
    assert search.index_more(100) == 5
    database.close_all()


def test_a_host_with_a_full_disk_is_healthy_because_the_database_is_elsewhere(postgres_url, tmp_path, monkeypatch):
    monkeypatch.setattr(storage_health, "LEAST_FREE", 2**80)
    create_app(Settings(instance=tmp_path, database_url=postgres_url, vault_key=KEY))
    storage_health._write_probe()._run()
    assert storage_health.write_fault() is None
    database.close_all()


def test_a_key_file_is_not_changed_alone_while_other_hosts_have_the_old_one(host):
    keys = {"ORDERS_VAULT_KEY": ""}
    first, second = host("a", **keys), host("b", **keys)
    first.flask("seed")
    second.instance.mkdir(exist_ok=True)
    shutil.copy(first.instance / "vault.key", second.instance)
    old = (first.instance / "vault.key").read_text()
    done = first.flask("vault", "rotate", "--wait", "0", check=False)
    assert (done.returncode, "--only-host" in done.stderr) == (1, True)
    assert (first.instance / "vault.key").read_text() == old
    second.flask("merchant", "show", "demo")
    first.flask("vault", "rotate", "--wait", "0", "--only-host")
    assert (first.instance / "vault.key").read_text() != old


def test_keys_in_settings_change_host_by_host_and_each_decrypts_the_others_values(host):
    new = Fernet.generate_key().decode()
    before, after = host("a", ORDERS_VAULT_KEY=f"{KEY},{new}").start(), host("b", ORDERS_VAULT_KEY=f"{new},{KEY}")
    after.start()
    for seals, opens in ((before, after), (after, before)):
        order_no = client(seals).buy(channel=3, customer_name="张三").data["order_no"]
        assert "张三" in opens.flask("order", "show", order_no, "--reveal").stdout
    assert "remove the other 1" in after.flask("vault", "rotate").stdout
    assert [client(service).listed().data["total"] for service in (before, after)] == [2, 2]
    alone = host("c", ORDERS_VAULT_KEY=new).start()
    assert client(alone).listed().data["total"] == 2
    assert "张三" in alone.flask("order", "show", order_no, "--reveal").stdout


def test_a_database_that_can_not_be_reached_is_named_in_one_line_without_its_password(host):
    address = "postgresql://orders:p%40ss@127.0.0.1:1/orders"
    said = host("a", ORDERS_DATABASE_URL=address).refused()
    assert "127.0.0.1" in said
    assert "Connection refused" in said
    assert "p@ss" not in said
    assert "p%40ss" not in said


def test_a_backup_is_left_to_postgres(both, tmp_path):
    done = both[0].flask("db", "backup", str(tmp_path / "copy"), check=False)
    assert (done.returncode, "pg_dump" in done.stderr) == (1, True)
