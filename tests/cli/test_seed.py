"""`tillbook seed`: the same demo content every time, and only in demo mode."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

from models import schema
from models.tables.order import Order
from models.tables.outbox import WebhookKey
from runtime.clock import CHINA
from services.orders import next_step
from services.sandbox import seeded_orders, seeding
from services.security import vault
from tests.applications import with_settings
from tests.databases import disconnect, settings_of

SEALED = {"secret", "callback_secret", "config", "details", "customer_name"}
RANDOM = ("password", "session")  # a hash with its salt, and a random text
NOVEMBER, DECEMBER = (datetime(2026, month, 1, 12, tzinfo=UTC) for month in (11, 12))

pytestmark = pytest.mark.usefixtures("demo")


@pytest.fixture
def fresh(any_database, tmp_path):
    """`fresh("name")` opens the application on an empty instance folder and returns its command runner."""

    def make(name, demo=True):
        runner = with_settings(settings_of(tmp_path / name, demo=demo)).test_cli_runner()
        return lambda *arguments: runner.invoke(args=list(arguments))

    yield make
    disconnect()


def _opened(row):
    shown = {name: value for name, value in row.items() if name not in RANDOM}
    return {name: vault.decrypt(value) if name in SEALED and value else value for name, value in shown.items()}


def _content():
    """The present content of the database, decrypted, without the random key of each database."""
    seeded = [table for table in schema.TABLES if table is not WebhookKey]
    return {table.__name__: [_opened(row) for row in table.select().dicts()] for table in seeded}


def _orders():
    """All orders in the order of time, without their ids, which depend on the order of insertion."""
    rows = Order.select().order_by(Order.merchant, Order.seq).dicts()
    return [{name: value for name, value in row.items() if name != "id"} for row in rows]


def test_seeding_makes_the_same_content_every_time(fresh, time_machine):
    contents = []
    for minute in (1, 2):
        time_machine.move_to(NOVEMBER + timedelta(minutes=minute))
        assert fresh(f"instance{minute}")("seed", "--orders", "60").exit_code == 0
        contents.append(_content())
    for table, rows in contents[0].items():
        assert rows == contents[1][table], table


def test_seeded_orders_end_today_and_differ_by_nothing_else(fresh, time_machine):
    def seeded(now, times=("createtime", "updatetime", "completedtime", "expires_at")):
        time_machine.move_to(now)
        assert fresh(f"{now:%F}")("seed", "--orders", "100").exit_code == 0
        assert now - timedelta(days=1) < datetime.fromtimestamp(max(row["updatetime"] for row in _orders()), UTC) < now
        shift = int(now.timestamp())
        return [
            {name: value - shift if name in times and value else value for name, value in row.items()}
            for row in ({**row, "order_no": row["order_no"][8:]} for row in _orders())
        ]

    assert seeded(NOVEMBER) == seeded(datetime(2027, 3, 5, 12, tzinfo=UTC))


def test_seeding_more_also_on_another_day_or_after_an_interruption_continues_the_same_orders(
    fresh, time_machine, monkeypatch
):
    monkeypatch.setattr(seeded_orders, "CHUNK", 20)
    time_machine.move_to(NOVEMBER)
    at_once = fresh("at once")
    at_once("seed", "--orders", "80")
    orders, balances = _orders(), at_once("ledger", "balances", "--json").output
    in_parts = fresh("in parts")
    in_parts("seed", "--orders", "30")
    chunks = []

    def break_off(done):
        chunks.append(done)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        seeded_orders.seed_orders(80, break_off)
    assert len(chunks) == 1
    stored = Order.select().count()
    assert 30 < stored < 80
    time_machine.move_to(DECEMBER)
    assert f"{80 - stored} orders added" in in_parts("seed", "--orders", "80").output
    assert (_orders(), in_parts("ledger", "balances", "--json").output) == (orders, balances)


def test_seeding_twice_changes_nothing(flask, rows):
    result = flask("seed", "--orders", "50")
    assert "Seeding orders" in result.stderr
    assert result.stdout.splitlines() == ["demo content was added before", "50 orders added"]
    before = rows()
    for more in (("--orders", "50"), (), ("--orders", "10")):
        assert "added before" in flask("seed", *more).output
    assert rows() == before


def test_two_simultaneous_seedings_add_the_operators_once(fresh):
    run = fresh("a")
    with ThreadPoolExecutor(4) as threads:
        for done in [threads.submit(seeding.seed_operators) for _ in range(4)]:
            done.result()
    listed = run("operator", "list").output
    assert [line.split()[0] for line in listed.splitlines()[1:]] == [name for name, _, _ in seeding.OPERATORS]


def test_seeding_ignores_orders_with_similar_numbers(flask, api):
    for number in ("SEED-", "SEED-7", "SEED-0000007b", "seed-0000007"):
        api.buy(merchant_order_no=number)
    assert "10 orders added" in flask("seed", "--orders", "10").output


def test_the_merchants_and_channels_are_those_that_scripts_rely_on(flask_json, api, other):
    assert {row["key"]: row["secret"] for row in seeding.MERCHANTS} == {"demo": "demo-secret", "other": "other-secret"}
    assert {row["key"] for row in flask_json("merchant", "list")} == {"demo", "other"}
    channels = {row["id"]: (row["category"], row["driver"]) for row in flask_json("channel", "list")}
    assert channels == {
        1: ("gateway_a", "sandbox"),
        2: ("gateway_b", "sandbox"),
        3: ("gateway_c", "manual"),
        4: ("gateway_b", "sandbox"),
    }
    assert flask_json("merchant", "show", "demo")["channels"] == [1, 2, 3]
    assert (api.listed().code, other.listed().code) == (1, 1)  # with demo-secret and other-secret
    assert [row["merchant"] for row in flask_json("account", "list")] == ["demo"]


@pytest.mark.parametrize("count", [1, 7, 300])
def test_any_number_of_orders_leaves_a_consistent_ledger_and_the_demo_balance(flask, flask_json, balances, count):
    assert f"{count} orders added" in flask("seed", "--orders", count).output
    assert Order.select().count() == count
    assert balances()[0] == 1_000_000
    assert not any(flask_json("ledger", "verify").values())


def test_orders_are_of_each_type_and_month_with_numbers_of_their_day_and_answer_queries(flask, api):
    flask("seed", "--orders", "400")
    orders = list(Order.select())
    kinds = Counter((order.order_type, order.status) for order in orders)
    ended = {(kind, status) for kind in (1, 2) for status in ("completed", "cancelled")}
    assert set(kinds) >= ended | {(1, "paid"), (2, "pending"), (2, "confirmed")}
    assert next_step.missing(5) == []
    days = {order.order_no: datetime.fromtimestamp(order.createtime, CHINA) for order in orders}
    assert len({day.strftime("%Y-%m") for day in days.values()}) >= 10
    # Like real orders: 24 digits, date first.
    wrong = [(number, day) for number, day in days.items() if len(number) != 24 or number[:8] != f"{day:%Y%m%d}"]
    assert not wrong[:3]
    page = api.listed(limit=100, status="completed", order_type=2).data
    assert page["total"] > 10
    assert api.detail(order_no=page["list"][0]["order_no"]).data == page["list"][0]


@pytest.mark.parametrize(
    "own",
    [
        ("merchant", "add", "shop"),
        # Otherwise the demo merchants would be linked to a channel that accepts real money.
        ("channel", "add", "--category", "gateway_a", "--driver", "manual", "--name", "Real"),
    ],
    ids=lambda own: own[0],
)
def test_a_database_with_real_merchants_or_channels_is_refused_and_unchanged(fresh, own):
    run = fresh("instance", demo=False)
    assert run(*own).exit_code == 0
    before = _content()
    result = run("seed", "--orders", "10")
    assert (result.exit_code, "merchants or channels of your own" in result.stderr) == (1, True)
    assert _content() == before


def test_an_invalid_number_of_orders_is_refused(refuses, nothing_changes):
    for count in ("-1", "x", "1.5", "10000001"):
        assert "--orders" in refuses("seed", "--orders", count)


@pytest.mark.parametrize("settings_of_app", [{"demo": False}])
def test_the_demo_content_is_not_served_outside_demo_mode(refuses):
    assert "demo merchants" in refuses("serve")
