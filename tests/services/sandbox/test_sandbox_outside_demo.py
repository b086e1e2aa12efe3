"""Sandbox channels in a database that is served outside demo mode."""

import json
from datetime import UTC
from types import SimpleNamespace

import pytest

from app import create_app
from gateways.sandbox.simulator import books
from models.tables.channel import Channel
from models.tables.ledger import Posting
from services.ledger import accounts
from services.merchants import cache
from services.operations import alerts
from services.security import operators, sandbox_guard
from tests import applications, databases
from tests.blueprints.console.acting import Forms
from tests.support import Api, Service, through_flask
from tests.trial_service import Trial

CLAIM = b"order_no=%s&outcome=success"
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


@pytest.fixture
def earnest(app, instance):
    """`earnest()`: the same database, served outside demo mode from now on: `api`, `http`, `run`."""

    def begin(**more):
        application = applications.with_settings(databases.settings_of(instance, demo=False, **more))
        sandbox_guard.disable()
        http = through_flask(application.test_client())
        runner = application.test_cli_runner()

        def run(*arguments, fails=False):
            result = runner.invoke(args=[str(each) for each in arguments])
            assert (result.exit_code != 0) is fails, f"{result.output}\n{result.exception!r}"
            return result

        return SimpleNamespace(api=Api(http), http=http, run=run, browser=application.test_client)

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


def test_its_channels_are_disabled_at_start_and_named_in_the_log(earnest, paid, caplog):
    production = earnest()
    (line,) = [record.message for record in caplog.records if "demo mode only" in record.message]
    assert "1 (Sandbox A), 2 (Sandbox B), 4 (Sandbox D)" in line
    assert "Withdrawals of demo are refused until you run `orders ledger remove-sandbox`" in line
    rows = {row["id"]: row["enabled"] for row in json.loads(production.run("channel", "list", "--json").stdout)}
    assert rows == {1: False, 2: False, 3: True, 4: False}


def test_no_caller_can_create_pay_or_simulate_orders_there(earnest, api, due):
    waiting = api.buy("500.00", channel=2).data["order_no"]
    production = earnest()
    Channel.update(enabled=True).where(Channel.id == 2).execute()  # by someone with database access
    assert production.api.buy("500.00", channel=2).code == 40403
    for path in ("/sandbox", "/sandbox/pay", "/sandbox/inbox", "/sandbox/sign"):
        assert production.http("POST", path, CLAIM % waiting.encode(), FORM).code == 40404
    assert production.http("GET", "/sandbox/inbox").code == 40404
    page = f"/addons/paychannel/pay/index?order_no={waiting}"
    assert production.http("GET", page).status == 404
    body = b"order_no=" + waiting.encode()
    assert production.http("POST", "/addons/paychannel/pay/paid", body, FORM).code == 40401
    assert production.http("POST", f"/addons/paychannel/notify/{waiting}", b"{}").code == 40401
    due()
    assert production.api.status(waiting) == "pending"


def test_open_payouts_there_are_not_run(earnest, api, flask, due):
    order_no = api.sell("20.00", channel=2).data["order_no"]
    flask("order", "accept", order_no)
    production = earnest()
    due()
    due()
    assert production.api.status(order_no) == "confirmed"


def test_a_deposit_there_that_matures_later_credits_nothing(earnest, api, flask, later, balances, due):
    flask("channel", "set", "2", "--settlement-days", "1")
    order_no = api.buy("500.00", channel=2).data["order_no"]
    api.play(order_no, "success")
    assert api.status(order_no) == "confirmed"
    before, production = balances(), earnest()
    for command in ("ask", "paid"):
        production.run("order", command, order_no, fails=True)
    later(2 * 86_400, 2)
    assert (production.api.status(order_no), balances()) == ("confirmed", before)


def test_a_merchant_with_its_money_cannot_withdraw_until_it_is_removed(earnest, paid):
    production = earnest()
    answer = production.api.sell("10.00", channel=3)
    assert answer.code == 40901
    assert "test money from a sandbox channel" in answer.text
    production.run("ledger", "remove-sandbox", "demo", "--apply")
    assert production.api.sell("10.00", channel=3).code == 1


def test_a_waiting_withdrawal_is_not_approved_either(earnest, paid, api):
    order_no = api.sell("10.00", channel=3).data["order_no"]
    production = earnest()
    said = production.run("order", "accept", order_no, fails=True).output
    assert "orders ledger remove-sandbox demo" in said


def test_one_that_was_approved_before_is_not_sent_until_then(earnest, paid, api, flask, later, monkeypatch):
    Channel.update(driver=Trial.name, config=Channel.get_by_id(1).config).where(Channel.id == 3).execute()
    cache.forget()
    order_no = api.sell("10.00", channel=3).data["order_no"]
    flask("order", "accept", order_no)
    production = earnest()
    later(60, 4)
    assert books().find(order_no) is None
    assert production.api.status(order_no) == "confirmed"
    production.run("ledger", "remove-sandbox", "demo", "--apply")
    later(400, 2)
    assert production.api.status(order_no) == "completed"


@pytest.mark.parametrize("accepted", [True, False])
def test_no_withdrawal_is_marked_as_paid_until_then(accepted, earnest, paid, api, flask):
    order_no = api.sell("10.00", channel=3).data["order_no"]
    flask("order", *(("accept", order_no) if accepted else ("reject", order_no, "--reason", "no")))
    production = earnest()
    said = production.run("order", "paid", order_no, "--reference", "R-1", fails=True).output
    assert "orders ledger remove-sandbox demo" in said
    production.run("ledger", "remove-sandbox", "demo", "--apply")
    production.run("order", "paid", order_no, "--reference", "R-1")


def test_the_console_offers_no_payout_and_shows_the_reason_until_then(earnest, paid, api, flask):
    waiting, accepted = (api.sell("10.00", channel=3).data["order_no"] for _ in range(2))
    flask("order", "accept", accepted)
    operators.add("anna", "four words not together")
    production = earnest()
    client = production.browser()
    form = Forms(client.get("/console/login").text).forms[-1] | {"name": "anna", "password": "four words not together"}
    client.post("/console/login", data=form)

    def page(order_no):
        return Forms(client.get(f"/console/order/{order_no}").text)

    assert [set(page(each).actions) for each in (waiting, accepted)] == [{"reject"}, {"reject"}]
    assert "orders ledger remove-sandbox demo" in page(accepted).text
    production.run("ledger", "remove-sandbox", "demo", "--apply")
    assert [set(page(each).actions) for each in (waiting, accepted)] == [{"reject", "accept"}, {"reject", "paid"}]


def test_no_exception_is_resolved_as_paid_out_until_then(earnest, paid, api, flask):
    order_no = api.sell("10.00", channel=3).data["order_no"]
    flask("order", "reject", order_no, "--reason", "no")
    flask("order", "paid", order_no, "--reference", "R-1")
    production = earnest()
    said = production.run("order", "settle", order_no, "--complete", fails=True).output
    assert "orders ledger remove-sandbox demo" in said
    production.run("ledger", "remove-sandbox", "demo", "--apply")
    production.run("order", "settle", order_no, "--complete")


def test_the_check_needs_no_query_for_each_order(earnest, paid, monkeypatch):
    production = earnest()
    production.run("ledger", "remove-sandbox", "--apply")
    production.api.sell("10.00", channel=3)
    asked = []
    monkeypatch.setattr(sandbox_guard, "has_money", lambda merchant: asked.append(merchant))
    assert production.api.sell("10.00", channel=3).code == 1
    assert asked == []


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


def test_a_deposit_that_was_all_fee_is_reversed_too(earnest, other, flask, balances):
    before = accounts.operator_balances()
    flask("merchant", "set", "other", "--buy-rate", "100")
    other.play(other.buy("500.00", channel=2).data["order_no"], "success")
    assert balances("other") == (0, 0)
    assert accounts.operator_balances()["fees"] == before.get("fees", 0) + 50_000
    production = earnest()
    assert "Withdrawals of demo, other are refused" in production.run("channel", "list").stderr
    production.run("ledger", "remove-sandbox", "other", "--apply")
    assert {**before, "fees": 0} == {**accounts.operator_balances(), "fees": 0}
    assert accounts.operator_balances()["fees"] == before.get("fees", 0)
    assert "nothing to remove" in production.run("ledger", "remove-sandbox", "other", "--apply").output
    production.run("ledger", "verify")


def test_open_deposits_there_are_a_finding_until_they_are_cancelled(earnest, other, later):
    order_no = other.buy("500.00", channel=2).data["order_no"]
    production = earnest()
    later(1_000, 3)
    assert [each.facts for each in alerts.now(UTC) if each.kind == "sandbox_orders"] == [{"merchants": ["other"]}]
    production.run("ledger", "remove-sandbox", "other", "--apply")
    assert json.loads(production.run("order", "show", order_no, "--json").stdout)["status"] == "cancelled"
    assert [each for each in alerts.now(UTC) if each.kind == "sandbox_orders"] == []


def test_spent_money_is_reversed_only_if_the_operator_takes_the_loss(earnest, paid, flask, balances, kept):
    flask("ledger", "adjust", "demo", "-1300.00", "--reason", "paid out elsewhere")
    left = balances()[0]
    production = earnest()
    before = kept()
    assert "--book-loss" in production.run("ledger", "remove-sandbox", "demo", "--apply", fails=True).output
    assert kept() == before
    (row,) = [
        each
        for each in json.loads(
            production.run("ledger", "remove-sandbox", "demo", "--apply", "--book-loss", "--json").stdout
        )
        if each["account"] == "available"
    ]
    assert (row["fen"], row["loss"]) == (-left, 1_049_700 - left)
    assert balances() == (0, 0)
    production.run("ledger", "verify")


def test_no_exception_of_its_orders_can_be_resolved_as_money(earnest, api):
    order_no = api.buy("500.00", channel=2).data["order_no"]
    api.play(order_no, "wrong_amount")
    production = earnest()
    said = production.run("order", "settle", order_no, "--credit", fails=True).output
    assert "demo mode only" in said
    assert (
        "demo mode only"
        in production.run(*("ledger", "adjust", "demo", "5", "--reason", "x", "--channel", "2"), fails=True).output
    )


def test_an_instance_with_sandbox_channels_starts_and_disables_them(slow, any_database, tmp_path):
    service = Service(tmp_path / "instance")
    service.flask("channel", "add", "--category", "gateway_b", "--driver", "manual", "--name", "Trial")
    create_app(databases.settings_of(service.instance))
    Channel.update(driver="sandbox").execute()  # releases up to 0.3.0 could add it
    databases.close()
    service.start()
    try:
        assert "demo mode only and are disabled: 1 (Trial)" in service.log.read_text()
        assert '"enabled": false' in service.flask("channel", "list", "--json").stdout
        assert service.api.send("POST", "/sandbox/pay").status == 404
        service.environ["ORDERS_DEMO"] = "1"  # for a command alone, because the database is not a demo's
        assert "demo mode only" in service.flask("channel", "set", "1", "--enabled", check=False).stderr
    finally:
        service.stop()
