"""The overview begins with what awaits an operator: each queue with its number, age, total and list."""

import re
from datetime import UTC

import pytest

from gateways.base import Report, State
from gateways.sandbox.driver import SandboxDriver
from models.tables.order import Order
from models.tables.refund import Refund
from services.ledger import scheduled_checks
from services.operations import alerts as findings
from services.operations import to_do
from tests.blueprints.console.overview.parts import alerts, card, queue, quiet
from tests.databases import unguarded
from tests.support import completed, until, words

BALANCE_OFF = "UPDATE ledger_account SET balance = balance + 1 WHERE kind = 'fees'"
LISTED = {"exceptions", "payouts", "claims", "callbacks"}


def test_without_anything_to_do_one_line_names_the_queues(overview, verified, api, flask):
    flask("merchant", "set", "demo", "--callback-url", "")
    completed(api)
    shown = overview()
    assert alerts(shown) is None
    names = (
        "Payouts to approve, Payouts to send, Claims to confirm, Exceptions, Differences to statements, "
        "Failed callbacks"
    )
    assert names in shown.text
    assert quiet(shown).startswith("Nothing to do ")
    assert "Nothing to do in" not in shown.text
    assert 'class="card queue' not in shown.html


def test_each_queue_has_a_card_with_its_number_total_and_age(
    overview, verified, api, http, flask, claimed, ahead, sign_in
):
    api.play(api.buy("100.00").data["order_no"], "wrong_amount")
    api.sell("30.00")
    ahead(3_600)
    api.sell("45.50")
    sent = api.sell("12.00", channel=3).data["order_no"]
    assert queue(overview(), "approve").startswith("Payouts to approve 3 ¥87.50 ")
    flask("order", "accept", sent)
    claimed("70.00")
    ahead(2 * 3_600)
    shown = overview()
    assert queue(shown, "approve") == "Payouts to approve 2 ¥75.50 oldest: 3 hours Approve payouts"
    assert queue(shown, "send") == "Payouts to send 1 ¥12.00 oldest: 2 hours Send payouts"
    assert queue(shown, "claims") == "Claims to confirm 1 ¥70.00 oldest: 2 hours Confirm claims"
    assert queue(shown, "exceptions") == "Exceptions 1 ¥101.00 oldest: 3 hours Resolve exceptions"
    assert quiet(shown) == "Nothing to do in: Differences to statements, Failed callbacks, Ledger integrity"
    assert "最早一笔已等待 3 小时" in sign_in("demo").get("/console/", headers={"Accept-Language": "zh"}).text
    age = re.search(r'^orders_to_do_oldest_seconds{queue="approve"} (.*)$', http("GET", "/metrics").text, re.M)[1]
    assert 3 * 3_600 <= float(age) < 3 * 3_600 + 60
    flask("order", "paid", sent)
    ahead(24 * 3_600)
    shown = overview()
    assert (queue(shown, "send"), 'id="queue-approve" class="card queue late"' in shown.html) == (None, True)


def test_of_a_long_queue_the_total_is_a_lower_bound(overview, verified, api, flask, monkeypatch):
    monkeypatch.setattr(to_do, "MOST", 2)
    for amount in ("10.00", "20.00", "40.00"):
        api.sell(amount)
        flask("order", "accept", api.sell(amount, channel=3).data["order_no"])
    shown = overview()
    assert queue(shown, "approve").startswith("Payouts to approve 3+ more than ¥30.00")
    assert queue(shown, "send").startswith("Payouts to send 2+ more than ¥30.00")


def test_failed_callbacks_are_a_queue_and_retried_ones_an_alert(overview, verified, api, shop, due, ahead):
    shop.answers(500)
    completed(api)
    due.callbacks()
    assert alerts(overview()) == ("soon", "Soon Callbacks being retried: 1.")
    for _ in range(8):
        ahead(40_000)
        due.callbacks()
    shown = overview()
    assert queue(shown, "failed") == "Failed callbacks 1 oldest: 4 days View callbacks"
    assert 'id="queue-failed" class="card queue bad"' in shown.html
    ahead(8 * 86_400)
    assert queue(overview(), "failed") is None


def test_a_channel_that_does_not_respond_is_named(overview, verified, api, later, flask_json):
    api.play(api.buy().data["order_no"], "timeout")
    later(60)
    shown = overview()
    assert "Sandbox B has not responded about 1 order" in alerts(shown)[1]
    assert queue(shown, "exceptions").startswith("Exceptions 1")
    api.play(api.buy(channel=1).data["order_no"], "wrong_amount")
    assert {row["to do"]: row["count"] for row in flask_json("to-do")} == {
        "exceptions to resolve": 1,
        "exceptions about the silence of channel 2": 1,
    }


@pytest.mark.parametrize(("days", "named"), [(3, True), (31, False)])
def test_a_channel_that_fails_more_than_usual_in_the_last_30_days_is_named(overview, verified, api, ahead, days, named):
    for _ in range(55):
        completed(api)
    ahead(days * 86_400)
    for number in range(24):
        api.play(api.buy().data["order_no"], "fail" if number % 2 else "success")
    scheduled_checks.record("command", {}, 0.1)
    text = "Sandbox B: of the last 24 deposits 50% succeeded, usually 100%."
    assert text in alerts(overview())[1] if named else alerts(overview()) is None


@pytest.fixture
def finish(api):
    """`finish("1110")`: deposits, of which 1 are completed and 0 fail."""

    def play(results):
        for each in results:
            api.play(api.buy().data["order_no"], "success" if each == "1" else "fail")

    return play


def test_a_success_rate_is_that_of_the_last_20_orders_or_15_minutes(overview, verified, finish, ahead):
    finish("1" * 52)
    ahead(2 * 86_400)
    scheduled_checks.record("command", {}, 0.1)
    finish("1" * 19)
    assert alerts(overview()) is None
    ahead(1_000)
    finish("0" * 7)  # the last 20 are 13 of before, and these
    assert "of the last 20 deposits 65% succeeded" in alerts(overview())[1]
    finish("1" * 29)  # all of the last 15 minutes
    assert alerts(overview()) is None
    finish("0" * 9)
    assert "of the last 45 deposits 64% succeeded" in alerts(overview())[1]
    ahead(86_400)
    scheduled_checks.record("command", {}, 0.1)
    assert alerts(overview()) is None


def test_chance_is_no_alert(overview, verified, finish, ahead):
    finish("10" * 26)
    ahead(2 * 86_400)
    scheduled_checks.record("command", {}, 0.1)
    finish("0" * 15 + "1" * 5)
    assert alerts(overview()) is None
    finish("0" * 18)
    assert "of the last 38 deposits 13% succeeded, usually 50%." in alerts(overview())[1]


def test_an_unchecked_ledger_is_a_queue(overview, api, ahead):
    completed(api)
    assert queue(overview(), "ledger") == "Ledger integrity The ledger has never been checked. Check ledger"
    scheduled_checks.record("command", {}, 0.1)
    assert queue(overview(), "ledger") is None
    ahead(3 * 86_400)
    assert "The ledger has not been checked for 3 days." in queue(overview(), "ledger")


@pytest.mark.breaks_the_ledger
@pytest.mark.usefixtures("slow")
def test_a_damaged_ledger_turns_its_card_red_and_names_the_failures(overview, verified, api, instance):
    completed(api)
    with unguarded(instance) as books:
        books.execute(BALANCE_OFF)
    scheduled_checks.start("operator demo")
    until(scheduled_checks.running)
    until(lambda: not scheduled_checks.running())
    shown = overview()
    assert 'id="queue-ledger" class="card queue bad"' in shown.html
    assert "Ledger integrity check failed. Failed checks: balances equal their entries." in queue(shown, "ledger")
    assert "account fees 0 has 61 fen, but its entries sum to 60" in card(shown, "Ledger integrity</a>")


def test_the_lists_of_the_queues_have_exactly_those_rows(
    overview, page, verified, api, http, flask, shop, due, claimed, flask_json
):
    exceptions = [api.buy(channel=channel).data["order_no"] for channel in (1, 2)]
    for order_no in exceptions:
        api.play(order_no, "wrong_amount")
    to_approve = [api.sell().data["order_no"], api.sell(channel=3).data["order_no"]]
    to_send, claim = api.sell(channel=3).data["order_no"], claimed("100.00")
    flask("order", "accept", to_send)
    shop.answers(410)
    failed = completed(api)
    due.callbacks()
    links = overview().links

    def listed(button):
        rows = page(links[button].removeprefix("/console/").replace("&amp;", "&")).rows
        return sorted(words(row["Order number"]).split()[0] for row in rows)

    assert {button: listed(button) for button in links if button.partition(" ")[2] in LISTED} == {
        "Resolve exceptions": sorted(exceptions),
        "Approve payouts": sorted(to_approve),
        "Send payouts": [to_send],
        "Confirm claims": [claim],
        "View callbacks": [failed],
    }
    assert {row["to do"]: (row["count"], row["amount"]) for row in flask_json("to-do")} == {
        "exceptions to resolve": (2, "202.00"),
        "withdrawals to approve": (2, "200.00"),
        "payouts to send manually": (1, "100.00"),
        "claimed deposits to confirm": (1, "100.00"),
        "callbacks that failed": (1, ""),
    }
    lines = http("GET", "/metrics").text.splitlines()
    assert {'orders_to_do{queue="approve"} 2.0', 'orders_to_do{queue="send"} 1.0'} <= set(lines)


def test_the_total_of_exceptions_is_what_the_channel_still_has(verified, api, flask, flask_json, monkeypatch):
    order_no = api.buy().data["order_no"]
    flask("order", "check", order_no)
    for report in (Report(State.PAID, 8_000, "R-1"), Report(State.PAID, 3_000, "R-1", returned=5_000)):
        monkeypatch.setattr(SandboxDriver, "query", lambda driver, payment, report=report: report)
        flask("order", "check", order_no)
    (row,) = flask_json("to-do")
    assert (row["to do"], row["amount"]) == ("exceptions to resolve", "30.00")


def test_an_open_order_without_a_next_step_is_shown_with_its_number(overview, verified, api, http, flask_json):
    assert flask_json("to-do") == []
    order_no = api.buy("70.00").data["order_no"]
    Order.update(due_at=None).execute()
    shown = overview()
    severity, text = alerts(shown)
    sentence = f"Open orders without a next step: 1 ({order_no}). Check them, and report this error."
    assert (severity, sentence in text, f"/console/order/{order_no}" in shown.html) == ("urgent", True, True)
    (row,) = flask_json("to-do")
    assert (row["to do"], row["count"], row["amount"]) == ("open orders without a next step", 1, "70.00")
    assert row["see"] == f"tillbook order show {order_no}"
    assert 'orders_to_do{queue="stuck"} 1.0' in http("GET", "/metrics").text.splitlines()


def test_paused_payouts_after_a_restore_and_notices_about_unknown_orders_are_shown(overview, api, flask):
    restored = "Restored from a backup"
    assert restored not in overview().html
    flask("db", "mark-restored")
    shown = overview().html
    assert (restored in shown, "tillbook db resume" in shown) == (True, True)
    flask("db", "resume")
    assert restored not in overview().html
    api.notice("202611230000000000000001", 100)
    assert "1 verified notice refers to an unknown order." in overview().html


def test_refunds_to_approve_and_to_send_have_cards_once_there_are_any(overview, verified, api, flask, http, due, ahead):
    assert "Refunds to approve" not in overview().text
    order_no = api.buy("100.00", channel=3).data["order_no"]
    flask("order", "paid", order_no, "--reference", "BANK-1")
    for amount in ("40.00", "10.00", "5.00"):
        flask("refund", "create", order_no, amount)
    due.orders()
    _, waits, _ = Refund.select().order_by(Refund.id)
    Refund.update(approved_by="", who="merchant", due_at=None).where(Refund.id == waits.id).execute()
    ahead(2 * 3_600)
    shown = overview()
    assert queue(shown, "refund_approve") == "Refunds to approve 1 ¥10.00 oldest: 2 hours Approve refunds"
    assert queue(shown, "refund_send") == "Refunds to send 1 ¥40.00 oldest: 2 hours Send refunds"
    told = flask("to-do").output
    assert all(text in told for text in ("refunds to approve", "refunds to send manually", "refund list --state send"))
    assert 'orders_to_do{queue="refund_send"} 1.0' in http("GET", "/metrics").text


def test_a_refund_without_a_result_for_an_hour_is_a_finding_that_is_urgent_after_a_day(
    overview, verified, api, flask, ahead, due
):
    order_no = api.buy("100.00", channel=3).data["order_no"]
    flask("order", "paid", order_no, "--reference", "BANK-1")
    flask("refund", "create", order_no, "40.00")
    due.orders()
    at_channel = {"channel": 2, "due_at": Refund.get().updatetime + 10 * 86_400}
    Refund.update(at_channel).execute()
    ahead(3_000)
    assert "Refunds without a result" not in overview().text
    ahead(700)
    text = "Refunds without a result: 1 (oldest: 62 minutes). Check them at the channel."
    assert text in alerts(overview())[1]
    finding = next(each for each in findings.now(UTC) if each.kind == "refund_late")
    assert finding.severity == findings.SOON
    ahead(86_400)
    finding = next(each for each in findings.now(UTC) if each.kind == "refund_late")
    assert finding.severity == findings.URGENT
    Refund.update(due_at=None).execute()
    number = Refund.get().refund_no
    text = f"Open refunds without a next step: 1 ({number}). Check them, and report this error."
    assert text in alerts(overview())[1]
    assert f"tillbook refund show {number}" in flask("to-do").output
