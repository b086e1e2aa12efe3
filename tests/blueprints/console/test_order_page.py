"""An order's page: its whole history, the actions with their actors, and the parts that only operators see."""

import csv
import io
import re

import pytest

from gateways.sandbox.driver import SandboxDriver
from models.db.base import database
from models.tables.operator import AuditEntry
from models.tables.order import History, Order
from models.tables.outbox import Callback
from tests.all_interfaces import LISTS
from tests.blueprints.console.acting import Desk, flashed
from tests.services import walks
from tests.support import CARD, PERSON, completed
from tests.turns import writer_held_up

MANUAL = 3
SCRIPT = "<script>alert(1)</script>"
SECRETS = {
    "cert_no": PERSON["cert_no"],
    "mobile_no": PERSON["mobile_no"],
    "email": "zhang.san@example.com",
    "address": "北京市东城区景山前街四号",
}


@pytest.fixture
def looking(sign_in):
    """The viewer, on the pages of orders."""
    return Desk(sign_in, "viewer")


@pytest.fixture
def audited(app):
    """`audited()`: the audit log without sign-ins: (who, action, about, key, detail)."""

    def read():
        rows = AuditEntry.select().where(AuditEntry.action != "sign in").order_by(AuditEntry.id)
        return [(row.who, row.action, row.about, row.key, row.detail) for row in rows]

    return read


@pytest.fixture
def personal(api):
    """A withdrawal with all kinds of personal data."""
    data = PERSON | {"email": SECRETS["email"], "address": SECRETS["address"]}
    return api.sell("20.00", 1, gatewaya_personal_data=data, gatewaya_card_info=CARD).data["order_no"]


def test_the_page_shows_the_whole_history_and_the_next_automatic_step(desk, api, console):
    order_no = api.buy("100.00", merchant_order_no="A-1").data["order_no"]
    api.notice(order_no, 10_000, secret="another one")
    pending = desk.order(order_no).text
    assert ("check the payment status" in pending, "Rejected notice bad signature" in pending) == (True, True)
    api.play(order_no, "success")
    seen = desk.order(order_no).text
    facts = ("Deposit ¥100.00", order_no, "A-1", "Demo Shop", "Sandbox B", "WeChat Pay", "0.60 %", "99.40")
    steps = ("Order created · merchant", "Channel notice · channel", "Settled · system", "order.completed")
    postings = (f"SB{order_no}", "Available Demo Shop 演示商户 99.40", "Fees 0.60", "-100.00")
    assert [text for text in (*facts, *steps, *postings) if text not in seen] == []
    assert "expire if unpaid" in desk.order(api.buy(channel=MANUAL).data["order_no"]).text
    assert "Next automatic step" not in desk.order(api.sell("5.00").data["order_no"]).text
    assert console.get("/console/order/123").status_code == 404


def test_an_exception_is_once_in_the_timeline_with_its_resolution(desk, world):
    order_no = walks.deposit_too_small(world)
    (key,) = [key for key in desk.order(order_no).actions if key.endswith("credit")]
    desk.act(order_no, key)
    seen = desk.order(order_no).text
    timeline = seen[seen.index("Timeline") : seen.index("Postings")]
    assert timeline.count("Exception 1: Wrong amount Paid a different amount · ¥99.99 · R-1 · system") == 1
    assert timeline.count("Exception 1 resolved: Credited operator demo") == 1
    assert "Cancelled Paid a different amount · operator demo" in timeline


def reveal(desk, order_no):
    """The response to the button that reveals an order's personal data."""
    (form,) = [form for form in desk.order(order_no).forms if "/reveal" in form.url]
    return desk.client.post(form.url, data=form)


def test_a_withdrawal_is_approved_revealed_and_marked_paid(desk, api, balances, audited):
    order_no = api.sell("50.00", MANUAL).data["order_no"]
    assert desk.act(order_no, "approve") == ("good", "Done. Order status: Payout in progress.")
    line = History.select().order_by(History.id.desc()).first()
    assert (line.who, line.before, line.after) == ("operator demo", "pending", "confirmed")
    shown = reveal(desk, order_no).text
    assert ("6222020000000000017" in shown, "50.00" in shown) == (True, True)
    assert 'name="reference"' in shown[shown.index('id="payee"') : shown.index('id="facts"')]
    assert desk.act(order_no, "paid", reference="BANK-1") == ("good", "Done. Order status: Completed.")
    assert (api.status(order_no), balances()) == ("completed", (1_000_000 - 5_015, 0))
    assert audited() == [
        ("demo", "accept order", "order", order_no, ""),
        ("demo", "reveal", "order", order_no, ""),
        ("demo", "mark paid", "order", order_no, "50.00; BANK-1"),
    ]


def test_a_rejection_needs_a_reason_and_names_its_operator(desk, api, order_details, balances):
    order_no = api.sell("50.00", MANUAL).data["order_no"]
    for reason in ("", "   ", "x" * 201, "a\x00b", "two\nlines"):
        category, text = desk.act(order_no, "reject", reason=reason)
        assert (category, "reason" in text, api.status(order_no)) == ("bad", True, "pending")
    desk.act(order_no, "reject", reason="  wrong card 卡号 ")
    last = order_details(order_no)["history"][-1]
    assert (last["to"], last["who"], last["why"]) == ("cancelled", "operator demo", "wrong card 卡号")
    assert balances() == (1_000_000, 0)


@pytest.mark.parametrize("word", ["paid", "open", "failed"])
def test_a_reason_that_is_a_word_of_channels_remains_as_it_was_typed(desk, api, word):
    order_no = api.sell("50.00", MANUAL).data["order_no"]
    desk.act(order_no, "reject", reason=word)
    assert f"Cancelled {word} " in desk.order(order_no).text


def test_an_impossible_amount_changes_nothing_and_is_not_repeated(desk, api, audited):
    order_no = api.buy(channel=MANUAL).data["order_no"]
    for amount in ("0", "-5", "1.005", "abc", "1e99", "１２"):
        category, text = desk.act(order_no, "paid", amount=amount)
        assert (category, "amount" in text, api.status(order_no)) == ("bad", True, "pending")
        _, action, *_, detail = audited()[-1]
        assert (action, detail) == ("mark paid", f"not done: {text}".replace("&#39;", "'"))
    form = desk.order(order_no).actions["paid"]
    answer = desk.client.post(form.url, data={**form, "amount": SCRIPT})
    html = desk.client.get(answer.headers["Location"]).text
    assert (flashed(html)[1], SCRIPT in html) == ("Enter an amount, such as 12.50.", False)


def test_another_amount_becomes_an_exception(desk, api, exceptions):
    order_no = api.buy(channel=MANUAL).data["order_no"]
    told = desk.act(order_no, "paid", amount="99.00", reference="B-1")
    assert told == ("warn", "Done. Order status: Awaiting payment. An exception needs your decision. See below.")
    assert exceptions() == {order_no: "wrong_amount"}
    assert desk.act(order_no, "paid", amount="99.00", reference="B-1")[1].startswith("Already recorded")


def test_a_reference_of_another_order_needs_a_confirmation(desk, api, balances, audited):
    first, second = (api.buy(channel=MANUAL).data["order_no"] for _ in range(2))
    assert desk.act(first, "paid", reference="BANK-1")[0] == "good"
    category, text = desk.act(second, "paid", reference=" BANK-1 ")
    assert (category, api.status(second), balances()) == ("bad", "pending", (1_009_940, 0))
    assert first in text
    assert desk.act(second, "paid", reference="BANK-1", shared="1") == ("good", "Done. Order status: Completed.")
    assert (balances(), audited()[-1][4]) == ((1_019_880, 0), "100.00; BANK-1; shared reference")


def test_the_status_is_checked_and_the_response_applied(desk, api, order_details, audited):
    order_no, unanswered = (api.buy().data["order_no"] for _ in range(2))
    api.play(order_no, "silent")
    assert desk.act(order_no, "check") == ("good", "Channel result: paid. Order status: Completed.")
    assert {line["why"] for line in order_details(order_no)["history"]} >= {"Status check by operator demo"}
    api.play(unanswered, "timeout")
    assert desk.act(unanswered, "check") == ("bad", "No valid response: the sandbox did not answer")
    assert audited()[-1][4] == "not done: No valid response: the sandbox did not answer"


@pytest.mark.parametrize("action", ["check", "reject"])
def test_no_channel_is_called_inside_a_transaction(desk, world, monkeypatch, action):
    asked = []

    def listening(ask):
        def heard(self, about):
            asked.append(database.in_transaction())
            return ask(self, about)

        return heard

    order_no = walks.sell_accepted(world)
    monkeypatch.setattr(SandboxDriver, "query_payout", listening(SandboxDriver.query_payout))
    desk.act(order_no, action, **({"reason": "no"} if action == "reject" else {}))
    assert asked == [False]


def test_one_callback_or_all_of_an_order_are_redelivered(desk, api, flask, due, shop, refuses, flask_json):
    def offered():
        return [key for key in desk.order(order_no).actions if key.startswith("redeliver-") and key != "redeliver-all"]

    flask("merchant", "set", "demo", "--events", "paid,confirmed")
    order_no = api.buy().data["order_no"]
    api.play(order_no, "success")
    due()
    sent = len(shop.got)
    assert desk.act(order_no, offered()[0])[0] == "good"
    due()
    assert desk.act(order_no, "redeliver-all")[1] == "3 callbacks will be resent."
    due()
    assert len(shop.got) == sent + 4
    flask("merchant", "set", "demo", "--callback-url", "")
    assert offered() == []
    assert "no callback URL" in refuses("callback", "redeliver", flask_json("callback", "list")[0]["id"])


def test_money_corrected_while_it_is_credited_is_not_credited_at_an_unconfirmed_amount(desk, api, balances):
    order_no, before = api.buy().data["order_no"], balances()[0]
    api.notice(order_no, 5_000)
    (form,) = (form for key, form in desk.order(order_no).actions.items() if key.endswith("credit"))
    with writer_held_up() as callers:
        callers.call(api.notice, order_no, 6_000)
        sent = callers.call(lambda: desk.client.post(form.url, data=form))
    assert sent.result(20).status_code == 303
    category, text = flashed(desk.client.get(sent.result().headers["Location"]).text)
    assert (category, balances()[0] - before) in (("good", 4_970), ("bad", 0))
    assert category == "good" or "The amount of this exception was corrected just now" in text


def test_an_outdated_action_is_refused_and_recorded(desk, sign_in, api, audited, rows):
    def kept():
        return {name: found for name, found in rows().items() if name != "AuditEntry"}

    order_no = api.sell("50.00", MANUAL).data["order_no"]
    other = Desk(sign_in)
    stale = other.order(order_no).actions
    desk.act(order_no, "approve")
    before = kept()
    category, text = other.send(stale["reject"], reason="no")
    assert (category, "Reload and try again" in text, kept() == before) == ("bad", True, True)
    assert (audited()[-1][1], audited()[-1][4].partition(":")[0]) == ("reject order", "not done")
    desk.act(order_no, "reject", reason="no")
    before = kept()
    refusal = "Not possible in the current order status: Cancelled."
    assert (other.send(stale["approve"]), kept() == before) == (("bad", refusal), True)
    assert audited()[-1] == ("demo", "accept order", "order", order_no, f"not done: {refusal}")


def test_a_viewer_sees_the_page_without_buttons(looking, world, personal):
    for order_no in (personal, walks.deposit_too_small(world), walks.buy_paid(world)):
        seen = looking.order(order_no)
        assert [form.url for form in seen.forms] == ["/console/logout", "/console/logout/everywhere"]
        assert order_no in seen.text


@pytest.mark.parametrize("path", ["act", "reveal"])
def test_only_an_operators_own_form_does_anything(looking, desk, app, api, rows, path):
    order_no = api.sell("50.00", MANUAL).data["order_no"]
    form = desk.order(order_no).actions["approve"]
    token = looking.order(order_no).fields["csrf_token"]
    without = {name: value for name, value in form.items() if name != "csrf_token"}
    before = rows()
    for client, data, statuses in (
        (looking.client, form | {"csrf_token": token}, (403,)),
        (desk.client, without, (400,)),
        (desk.client, form | {"csrf_token": "forged"}, (400,)),
        (app.test_client(), form, (302, 400)),
    ):
        answer = client.post(f"/console/order/{order_no}/{path}", data=data)
        assert (answer.status_code in statuses, "6222020000000000017" in answer.text) == (True, False)
        assert rows() == before


def test_sensitive_values_are_masked_until_they_are_revealed(desk, api, personal, audited, caplog):
    hidden = [*SECRETS.values(), CARD["card_no"], CARD["card_name"], PERSON["cert_begin_date"]]
    masked = desk.order(personal)
    assert [value for value in hidden if value in masked.html] == []
    assert f"{'*' * 15}0017" in masked.text
    shown = reveal(desk, personal)
    assert [value for value in hidden if value not in shown.text] == []
    assert shown.headers["Cache-Control"] == "no-store"
    assert audited() == [("demo", "reveal", "order", personal, "")]
    again = desk.client.get(f"/console/order/{personal}/reveal")
    assert (again.status_code, again.headers["Location"]) == (302, f"/console/order/{personal}")
    assert [value for value in hidden if value in desk.order(personal).html + caplog.text] == []
    named = api.buy(customer_name="欧阳娜娜").data["order_no"]
    assert ("欧*" in desk.order(named).text, "欧阳娜娜" in desk.order(named).html) == (True, False)
    assert "欧阳娜娜" in reveal(desk, named).text


def test_others_texts_are_escaped(desk, api, shop, due, flask):
    shop.answers(500, SCRIPT)
    deposit = api.buy(customer_name=SCRIPT, merchant_order_no=SCRIPT).data["order_no"]
    api.notice(deposit, 9_000, reference=SCRIPT)
    api.notice(deposit, 9_100, reference="R-2", state=SCRIPT)
    person = PERSON | {"name": SCRIPT, "cert_no": SCRIPT, "address": SCRIPT}
    card = CARD | {"card_name": SCRIPT}
    payout = api.sell("20.00", 1, gatewaya_personal_data=person, gatewaya_card_info=card).data["order_no"]
    flask("order", "reject", payout, "--reason", SCRIPT)
    due.callbacks()
    for order_no in (deposit, payout):
        for html in (desk.order(order_no).html, reveal(desk, order_no).text):
            assert SCRIPT not in html
            assert len(re.findall(r"<script\b", html)) == html.count("<script src=")  # the console's own
    assert desk.order(deposit).text.count(SCRIPT) > 3
    assert SCRIPT in desk.order(payout).text


def test_all_pages_exports_and_queries_work_with_erased_orders(personal, api, http, flask, page, export, due, shop):
    named = api.buy(customer_name="诸葛亮").data["order_no"]
    api.play(named, "success")
    flask("order", "reject", personal, "--reason", "no")
    due()
    Order.update(due_at=None).execute()
    flask("privacy", "erase", personal, named, "--yes")
    webhooks = [row.webhook_id for row in Callback.select()]
    assert len(webhooks) == 2
    assert "was erased as personal data" in page(f"order/{personal}").text
    paths = ("", *(f"{name}/" for name in LISTS), *(f"callback/{webhook}" for webhook in webhooks))
    shown = [page(path).text for path in (*paths, f"order/{personal}", f"order/{named}")]
    shown += [export(f"{name}/export").text for name in LISTS]
    shown += [http("GET", f"/addons/paychannel/pay/index?order_no={named}").text]
    for number in (personal, named):
        shown += [flask("order", "show", number, "--reveal").output, str(api.detail(order_no=number).data)]
    assert api.listed().code == 1
    assert not [text for text in ("诸葛亮", *SECRETS.values()) if text in "\n".join(shown)]


def test_a_dialog_has_its_fields_before_the_folded_postings_and_callbacks(world, desk):
    order_no = walks.buy_claimed(world)
    html = desk.order(order_no).html
    dialog = re.search(r'<div popover id="paid".*?</form>', html, re.S)[0]
    parts = (
        'name="reference"',
        'name="amount"',
        '<dl class="facts">',
        "<summary>Postings",
        "<summary>Callback",
        "<pre ",
    )
    places = [dialog.index(part) for part in (*parts, 'class="buttons foot"')]
    assert places == sorted(places)
    assert dialog.count('<details class="effect">') == 2


def test_an_adjustment_is_shown_with_its_reason_and_apart_from_the_orders_own_money(api, flask, desk):
    order_no = completed(api)
    flask("ledger", "adjust", "demo", "-5.50", "--reason", f"complaint {SCRIPT}", "--order", order_no)
    shown = desk.order(order_no)
    assert "Credited ¥99.40" in shown.text
    assert "Balance adjustments -5.50" in shown.text
    (posting,) = re.findall(r"Adjustment · Available -5\.50.*?</script>", shown.text)
    assert "Fees +5.50" in posting
    assert f"operator (command line) complaint {SCRIPT}" in posting
    assert shown.links["Adjust balance"] == f"/console/merchant/demo/adjust?order_no={order_no}"


def test_a_deposit_shows_its_estimated_channel_cost_unless_it_is_cancelled(world, desk):
    world.flask("channel", "set", walks.SANDBOX, "--cost", "wxpay=0.6")
    shown = "Merchant receives 99.40 Channel cost, estimated (paid by you) 0.60"
    assert shown in desk.order(walks.buy_paid(world)).text
    assert "Channel cost" not in desk.order(walks.buy_expired(world)).text


def test_a_viewer_is_offered_no_adjustment(api, looking):
    assert "Adjust balance" not in looking.order(completed(api)).links


@pytest.mark.parametrize("walk", [walks.buy_expired, walks.sell_rejected], ids=lambda walk: walk.__name__)
def test_a_cancelled_order_shows_no_fees(world, desk, export, walk):
    order_no = walk(world)
    money = desk.order(order_no).text
    assert "Fees none, the order is cancelled" in money
    assert [words for words in ("Fee, ", "Merchant receives", "Merchant pays") if words in money] == []
    (row,) = csv.DictReader(io.StringIO(export("orders/export").data.decode("utf-8-sig")))
    assert row["Fees (¥)"] == ""
    told = world.flask("order", "show", order_no).output
    assert re.search(r"^service_amount$", told, re.M)


def test_a_cancelled_order_whose_payment_was_credited_shows_the_fee_that_was_charged(world, desk):
    order_no = walks.deposit_too_small(world)
    (key,) = [key for key in desk.order(order_no).actions if key.endswith("credit")]
    desk.act(order_no, key)
    assert "Fee, 0.60 % -0.60 Merchant receives 99.39" in desk.order(order_no).text
