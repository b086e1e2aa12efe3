"""Sandbox channels in a database that is not a demo's: their money is removed before any other money moves."""

import json
from types import SimpleNamespace

import pytest

from app import create_app
from models.tables.channel import Channel
from models.tables.ledger import Posting
from models.tables.merchant import PROPORTIONAL, Merchant
from models.tables.order import Order
from models.tables.refund import Refund
from services.ledger import accounts
from services.merchants import cache
from services.refunds import place
from services.refunds.place import Wanted
from services.sandbox import removal
from tests import applications, databases
from tests.refunds import allow, refunded
from tests.services import walks
from tests.support import Api, Service, completed, through_flask

FORM = {"Content-Type": "application/x-www-form-urlencoded"}
LEFTOVERS = "the database has money or open orders of sandbox channels (merchants: {}), which work in demo mode only"


@pytest.fixture
def earnest(app, instance):
    """`earnest()`: the same database, from now on without demo mode and the demo's merchants: `api`, `http`, `run`."""

    def begin(**more):
        application = applications.with_settings(databases.settings_of(instance, demo=False, **more))
        Merchant.update(demo=False).execute()
        http = through_flask(application.test_client())
        runner = application.test_cli_runner()

        def run(*arguments, fails=False):
            result = runner.invoke(args=[str(each) for each in arguments])
            assert (result.exit_code != 0) is fails, f"{result.output}\n{result.exception!r}"
            return result

        return SimpleNamespace(api=Api(http), http=http, run=run)

    return begin


REAL = 100_000  # fen that are not the sandbox's, like the demo's opening balance


@pytest.fixture
def real(flask):
    """The merchant also has 1,000 yuan of real money."""
    flask("ledger", "adjust", "demo", "1000", "--reason", "real money")


@pytest.fixture
def paid(api, real):
    """A deposit of 500 yuan that a stranger reported as paid in the sandbox."""
    order_no = api.buy("500.00", channel=2).data["order_no"]
    api.play(order_no, "success")
    return order_no


def all_fee(w):
    w.flask("merchant", "set", "demo", "--buy-rate", "100")
    walks.buy_paid(w)


def adjusted(w):
    w.flask("ledger", "adjust", "demo", "5.00", "--reason", "a present", "--channel", "2")


def refund(outcome):
    def refunded_in_part(w):
        allow(fees=PROPORTIONAL)
        refunded(w.api, walks.buy_paid(w), "40.00", outcome)

    refunded_in_part.__name__ = f"refund_{outcome}"
    return refunded_in_part


def refund_by_platform(w):
    order = Order.find(walks.buy_paid(w))
    place.place(order, Wanted(None, "operator", approved_by="operator", by_platform=True))


def adjusted_for_an_order(w):
    order_no = walks.buy_paid(w)
    w.flask("ledger", "adjust", "demo", "5.00", "--reason", "a present", "--channel", "2", "--order", order_no)


LEFT = [
    all_fee,
    adjusted,
    adjusted_for_an_order,
    refund("success"),
    refund("silent"),
    refund("fail"),
    refund("late_fail"),
    refund_by_platform,
    walks.buy_pending,
    walks.buy_paid,
    walks.buy_confirmed,
    walks.played("late"),  # an operator could credit it
    walks.sell_pending,
    walks.sell_accepted,
    walks.sell_paid_out,
]


@pytest.fixture
def demo_balance_elsewhere(app):
    """The demo's opening balance did not come through a sandbox channel."""
    Channel.update(driver="manual").where(Channel.id == 1).execute()
    cache.forget()


@pytest.mark.usefixtures("demo_balance_elsewhere")
@pytest.mark.parametrize("left", LEFT, ids=lambda left: left.__name__)
def test_the_service_refuses_all_that_a_sandbox_channel_left_until_it_is_removed(earnest, world, left):
    left(world)
    production = earnest()
    said = production.run("serve", fails=True).output
    assert LEFTOVERS.format("demo") in said
    assert "`tillbook ledger remove-sandbox`" in said
    production.run("ledger", "remove-sandbox", "--apply")
    removal.refuse_leftovers()
    production.run("ledger", "verify")


@pytest.mark.usefixtures("demo_balance_elsewhere")
def test_orders_that_failed_in_the_sandbox_left_nothing(earnest, api, flask):
    for outcome in ("fail", "success"):
        order_no = api.sell("20.00", channel=2).data["order_no"]
        api.play(order_no, outcome)
        flask("order", "reject", order_no, "--reason", "no")
    earnest()
    removal.refuse_leftovers()


def test_no_command_moves_money_of_an_order_until_then(earnest, paid, api, kept):
    order_no = api.sell("10.00", channel=3).data["order_no"]
    production = earnest()
    before = kept()
    commands = ("approve", "accept", "check", "paid --reference R-1", "returned", "not-received", "resolve --complete")
    for command in commands:
        name, *more = command.split()
        assert LEFTOVERS.format("demo") in production.run("order", name, order_no, *more, fails=True).output, command
    assert kept() == before


def test_withdrawals_can_be_found_and_rejected_first_and_approved_afterwards(earnest, paid, api, balances):
    spent, kept = (api.sell("10.00", channel=3).data["order_no"] for _ in range(2))
    production = earnest()
    assert spent in production.run("order", "list").output
    assert spent in production.run("order", "show", spent).output
    production.run("order", "reject", spent, "--reason", "paid by test money")
    production.run("ledger", "remove-sandbox", "demo", "--apply")
    production.run("order", "approve", kept)
    production.run("order", "paid", kept, "--reference", "R-1")
    assert (production.api.status(kept), balances()) == ("completed", (REAL - 1_003, 0))


def test_a_channel_is_disabled_and_its_orders_are_left_alone(earnest, api, flask, later, caplog):
    order_no = api.sell("20.00", channel=2).data["order_no"]
    flask("order", "approve", order_no)
    flask("order", "reject", order_no, "--reason", "no")  # its status would be checked until the next day
    production = earnest()
    removal.disable()
    (line,) = [record.message for record in caplog.records if "demo mode only" in record.message]
    assert "1 (Sandbox A), 2 (Sandbox B), 4 (Sandbox D)" in line
    rows = {row["id"]: row["enabled"] for row in json.loads(production.run("channel", "list", "--json").stdout)}
    assert rows == {1: False, 2: False, 3: True, 4: False}
    assert production.api.buy("500.00", channel=2).code == 40403
    later(2 * 86_400, 3)
    shown = json.loads(production.run("order", "show", order_no, "--json").stdout)
    assert (shown["status"], shown["exceptions"], shown["due_at"]) == ("cancelled", [], None)


def test_no_balance_is_adjusted_through_a_channel(earnest):
    adjust = ("ledger", "adjust", "demo", "5", "--reason", "x", "--channel", "2")
    assert "demo mode only" in earnest().run(*adjust, fails=True).output


def test_a_channel_that_someone_enables_in_the_database_moves_nothing(earnest, api, flask, balances):
    """Outside demo mode its driver opens, pays out and accepts nothing."""
    waiting = api.buy("500.00", channel=2).data["order_no"]
    production = earnest()
    production.run("ledger", "remove-sandbox", "--apply")
    flask("ledger", "adjust", "demo", "100", "--reason", "real money")
    before = balances()
    assert Channel.get_by_id(2).enabled
    assert production.api.buy("500.00", channel=2).code == 50201
    assert production.api.sell("20.00", channel=2).code == 42200
    for path in ("/sandbox", "/sandbox/pay", "/sandbox/inbox", "/sandbox/sign"):
        assert production.http("POST", path, f"order_no={waiting}&outcome=success".encode(), FORM).code == 40404
    assert production.http("POST", f"/addons/paychannel/notify/{waiting}", b"{}").status == 400
    assert (production.api.status(waiting), balances()) == ("cancelled", before)


def test_without_apply_it_shows_what_it_would_post_and_changes_nothing(earnest, paid, rows):
    production = earnest()
    before = rows()
    assert "nothing posted" in production.run("ledger", "remove-sandbox").output
    assert rows() == before


def test_every_account_is_reversed_once_and_the_ledger_passes_its_check(earnest, api, flask, later, real, balances):
    for amount in ("500.00", "70.00"):
        api.play(api.buy(amount, channel=2).data["order_no"], "success")
    held = api.sell("20.00", channel=2).data["order_no"]
    waiting = api.buy("60.00", channel=1).data["order_no"]
    done = api.sell("30.00", channel=2).data["order_no"]
    flask("order", "accept", done)
    later(10, 3)
    assert api.status(done) == "completed"
    assert balances() != (REAL, 0)

    production = earnest()
    production.run("ledger", "remove-sandbox", "--apply")
    assert balances() == (REAL, 0)
    assert {name: fen for name, fen in accounts.operator_balances().items() if fen} == {"fees": -REAL}
    assert {production.api.status(each) for each in (held, waiting)} == {"cancelled"}
    posted = Posting.select().count()
    assert "nothing to remove" in production.run("ledger", "remove-sandbox", "--apply").output
    assert Posting.select().count() == posted
    production.run("ledger", "verify")
    audit = json.loads(production.run("order", "show", held, "--json").stdout)
    assert audit["history"][-1]["code"] == "sandbox_removed"


def test_refunds_are_reversed_with_their_deposits_and_open_ones_cancelled(earnest, api, flask, real, balances, later):
    allow(fees=PROPORTIONAL)
    done, going = completed(api), completed(api)
    refunded(api, done, "40.00")
    refund_no = refunded(api, going, "30.00", "silent")
    flask("channel", "set", 2, "--settlement-days", 1)
    refunded(api, completed(api), "10.00", "silent")
    late = api.buy().data["order_no"]
    api.play(late, "fail")
    api.notice(late, 9_000, reference="R-9")
    flask("order", "settle", late, "--refund")
    assert balances()[1] == 2_982
    production = earnest()
    production.run("ledger", "remove-sandbox", "--apply")
    assert {each.status for each in Refund.select()} == {"completed", "cancelled"}
    assert Refund.find(refund_no).status == "cancelled"
    assert balances() == (REAL, 0)
    assert {name: fen for name, fen in accounts.operator_balances().items() if fen} == {"fees": -REAL}
    removal.refuse_leftovers()
    assert "nothing to remove" in production.run("ledger", "remove-sandbox", "--apply").output
    production.run("ledger", "verify")
    removal.disable()
    assert Refund.select().where(Refund.due_at.is_null(False)).count() == 0


def test_an_adjustment_is_reversed_if_it_went_through_the_sandbox_whatever_order_it_names(
    earnest, api, flask, paid, balances
):
    claimed = api.buy("100.00", channel=3).data["order_no"]
    flask("order", "paid", claimed)  # 99.40 of real money
    flask("ledger", "adjust", "demo", "7.00", "--reason", "through", "--channel", "2", "--order", claimed)
    flask("ledger", "adjust", "demo", "3.00", "--reason", "own money", "--order", paid)
    production = earnest()
    production.run("ledger", "remove-sandbox", "--apply")
    assert balances() == (REAL + 9_940 + 300, 0)
    removal.refuse_leftovers()
    production.run("ledger", "verify")


def test_a_deposit_that_was_all_fee_is_reversed_too(earnest, other, flask, balances):
    before = accounts.operator_balances()
    flask("merchant", "set", "other", "--buy-rate", "100")
    other.play(other.buy("500.00", channel=2).data["order_no"], "success")
    assert balances("other") == (0, 0)
    assert accounts.operator_balances()["fees"] == before.get("fees", 0) + 50_000
    production = earnest()
    assert LEFTOVERS.format("demo, other") in production.run("serve", fails=True).output
    production.run("ledger", "remove-sandbox", "other", "--apply")
    assert {**before, "fees": 0} == {**accounts.operator_balances(), "fees": 0}
    assert accounts.operator_balances()["fees"] == before.get("fees", 0)
    assert "nothing to remove" in production.run("ledger", "remove-sandbox", "other", "--apply").output
    production.run("ledger", "verify")


def test_spent_money_is_reversed_only_if_the_operator_takes_the_loss(earnest, paid, flask, balances, kept):
    flask("ledger", "adjust", "demo", "-1300.00", "--reason", "paid out elsewhere")
    left = balances()[0]
    production = earnest()
    before = kept()
    assert "--book-loss" in production.run("ledger", "remove-sandbox", "demo", "--apply", fails=True).output
    assert kept() == before
    posted = production.run("ledger", "remove-sandbox", "demo", "--apply", "--book-loss", "--json").stdout
    (row,) = [each for each in json.loads(posted) if each["account"] == "available"]
    assert (row["fen"], row["loss"]) == (-left, 1_049_700 - left)
    assert balances() == (0, 0)
    production.run("ledger", "verify")


def test_an_instance_with_a_leftover_channel_starts_once_it_is_clear(slow, any_database, tmp_path):
    service = Service(tmp_path / "instance")
    service.flask("channel", "add", "--category", "gateway_b", "--driver", "manual", "--name", "Trial")
    service.flask("merchant", "add", "shop")
    service.flask("ledger", "adjust", "shop", "5", "--reason", "test money", "--channel", "1")
    create_app(databases.settings_of(service.instance))
    Channel.update(driver="sandbox").execute()  # releases up to 0.3.0 could add it
    databases.close()
    assert LEFTOVERS.format("shop") in service.refused()
    service.flask("ledger", "remove-sandbox", "--apply")
    service.start()
    try:
        assert "demo mode only and are disabled: 1 (Trial)" in service.log.read_text()
        assert '"enabled": false' in service.flask("channel", "list", "--json").stdout
        assert service.api.send("POST", "/sandbox/pay").status == 404
        service.environ["ORDERS_DEMO"] = "1"  # for a command alone, because the database is not a demo's
        assert "demo mode only" in service.flask("channel", "set", "1", "--enabled", check=False).stderr
    finally:
        service.stop()
