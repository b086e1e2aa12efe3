"""Refunds at the console: the form on the order's page, the list with its bulk actions, and the operator's transfer."""

import re

import pytest

from gateways.base import Report, State
from gateways.sandbox.driver import SandboxDriver
from models.tables.operator import AuditEntry
from models.tables.order import PaymentException
from models.tables.refund import Refund
from services.refunds import settle
from services.security import operators
from tests.blueprints.console.acting import Desk, messages, token_of
from tests.blueprints.console.bulk import Bulk
from tests.blueprints.console.reading import Shown
from tests.refunds import allow, refunded
from tests.support import completed

MANUAL = 3
LIMIT = 5_000  # fen


@pytest.fixture
def settings_of_app():
    return {"requests_per_second": 1_000}


@pytest.fixture
def paid(api, flask):
    """`paid("100.00")`: the number of a completed deposit on the manual channel."""

    def made(amount="100.00", channel=MANUAL):
        order_no = api.buy(amount, channel=channel).data["order_no"]
        flask("order", "paid", order_no, "--reference", f"BANK-{order_no}")
        return order_no

    return made


def form_of(page):
    """The form that confirms a refund."""
    return next(form for form in page.forms if "sure" in form)


class Till:
    """An operator who refunds deposits."""

    def __init__(self, client):
        self.client = client

    def post(self, order_no, **fields):
        """The response to the form of the order's refund."""
        form = {"csrf_token": token_of(self.client), "reason": "", **fields}
        return self.client.post(f"/console/order/{order_no}/refund", data=form)

    def sure(self, order_no, amount, **fields):
        """The page that shows what the refund does."""
        answer = self.post(order_no, amount=amount, **fields)
        assert answer.status_code == 200, answer.text
        return Shown(answer.text)

    def refund(self, order_no, amount, **fields):
        """Refund as the page shows; return the message, and the refund."""
        page = self.sure(order_no, amount, **{name: value for name, value in fields.items() if name != "again"})
        answer = self.client.post(f"/console/order/{order_no}/refund", data={**form_of(page), **fields})
        assert answer.status_code == 303, answer.text
        found = messages(self.client.get(answer.location.partition("#")[0]).text)
        return found, Refund.select().order_by(Refund.id.desc()).first()


@pytest.fixture
def till(console):
    return Till(console)


@pytest.fixture
def waiting(paid, till, monkeypatch):
    """`waiting("10.00", "20.00")`: the numbers of refunds of several deposits that an operator must approve."""

    def made(*amounts, order_no=None):
        found = []
        for amount in amounts:
            _, refund = till.refund(order_no or paid(), amount)
            Refund.update(approved_by="", who="merchant", due_at=None).where(Refund.id == refund.id).execute()
            found.append(refund.refund_no)
        return found

    return made


def test_half_of_a_deposit_is_refunded_in_three_clicks_and_one_number(page, console, till, paid, balances, due):
    order_no, (available, held) = paid(), balances()
    shown = page(f"order/{order_no}")
    form = page(shown.links["Refund"].removeprefix("/console/"))  # the first click
    assert (form.fields["amount"], "Left to refund ¥100.00" in form.text) == ("100.00", True)
    sure = till.sure(order_no, "50.00")  # the second
    for told in ("The payer gets back ¥50.00", "Left to refund after it ¥50.00", "Fee returned to the merchant ¥0.00"):
        assert told in sure.text
    assert f"¥{available / 100:,.2f} → ¥{(available - 5_000) / 100:,.2f}" in sure.text
    assert "Send the money to the payer yourself" in sure.text
    answer = console.post(f"/console/order/{order_no}/refund", data=form_of(sure))  # the third
    refund = Refund.get()
    assert answer.location == f"/console/order/{order_no}", "the message is at the top of the page"
    assert (refund.amount, refund.who, refund.approved_by) == (5_000, "operator demo", "operator demo")
    assert balances() == (available - 5_000, held + 5_000)
    due.orders()
    told = page(f"order/{order_no}")
    for text in ("To send", "To refund ¥50.00", "Refunds -50.00", "Merchant receives, after refunds 49.40"):
        assert text in told.text
    assert "Refunded ¥0.00" not in told.text
    assert [row.action for row in AuditEntry.select().where(AuditEntry.key == order_no)] == ["refund"]


def test_the_operator_of_a_manual_channel_marks_it_as_refunded_with_a_reference(desk, till, paid, balances, due):
    order_no, before = paid(), balances()
    _, refund = till.refund(order_no, "40.00", reason="broken")
    due.orders()
    category, text = desk.act(order_no, f"mark-refunded-{refund.id}", reference="BANK-7")
    assert (category, text) == ("good", "Refund of ¥40.00. Status: Refunded.")
    shown = desk.order(order_no)
    for told in ("Refunded ¥40.00", "Credited, after refunds ¥59.40", "Refund of ¥40.00", "BANK-7", "broken"):
        assert told in shown.text
    assert balances() == (before[0] - 4_000, 0)
    assert [key for key in shown.actions if "refund" in key] == []
    assert desk.see("refunds/").rows[0]["Status"] == "Refunded"


def test_the_form_refuses_what_is_too_much_too_long_or_not_covered(till, paid, flask, balances):
    order_no = paid()
    for fields, problem in (
        ({"amount": "100.01"}, "The amount is more than what can be refunded: 100.00."),
        ({"amount": "0"}, "The amount is more than what can be refunded: 100.00."),
        ({"amount": "ten"}, "Enter an amount, such as 12.50."),
        ({"amount": "10.00", "reason": "很" * 27}, "The reason is too long"),
    ):
        answer = till.post(order_no, **fields)
        assert (answer.status_code, problem in answer.text) == (422, True), answer.text
    flask("ledger", "adjust", "demo", f"-{balances()[0] / 100 - 10:.2f}", "--reason", "spent")
    answer = till.post(order_no, amount="10.01")
    assert (answer.status_code, "available balance does not cover" in answer.text) == (422, True)
    till.sure(order_no, "10.00")
    _, refund = till.refund(order_no, "50.00", platform="1")
    assert (refund.paid_from, balances()) == ("platform", (1_000, 0))
    assert not Refund.select().where(Refund.id != refund.id).exists()


def test_what_the_page_showed_is_done_or_nothing(till, console, paid, flask):
    order_no = paid()
    first, second = till.sure(order_no, "60.00"), till.sure(order_no, "30.00")
    fees = till.sure(order_no, "20.00")
    assert console.post(f"/console/order/{order_no}/refund", data=form_of(first)).status_code == 303
    answer = console.post(f"/console/order/{order_no}/refund", data=form_of(second))
    assert (answer.status_code, "changed since this page was loaded" in answer.text) == (422, True)
    flask("merchant", "set", "demo", "--refund-fees", "proportional")
    assert console.post(f"/console/order/{order_no}/refund", data=form_of(fees)).status_code == 422
    assert Refund.select().count() == 1


def test_the_same_amount_within_ten_minutes_is_confirmed_knowingly(till, console, paid, ahead):
    order_no = paid()
    till.refund(order_no, "10.00")
    shown = till.sure(order_no, "10.00")
    assert "Refund the same amount again" in shown.text
    answer = console.post(f"/console/order/{order_no}/refund", data=form_of(shown))
    assert (answer.status_code, "Confirm that you refund it again" in answer.text) == (422, True)
    till.refund(order_no, "10.00", again="1")
    ahead(601)
    assert "again" not in till.sure(order_no, "10.00").fields
    assert Refund.select().count() == 2


def test_the_fee_goes_back_as_the_merchants_policy_says(till, paid, flask):
    flask("merchant", "set", "demo", "--refund-fees", "proportional")
    order_no = paid()
    shown = till.sure(order_no, "50.00")
    assert "Fee returned to the merchant ¥0.30" in shown.text
    assert "Deducted from the merchant ¥49.70" in shown.text
    _, refund = till.refund(order_no, "50.00")
    assert (refund.service_amount, refund.merchant_actual_amount) == (30, 4_970)


def test_a_deposit_that_is_not_credited_yet_is_refunded_without_a_posting(till, api, flask, balances, desk, due):
    flask("channel", "set", "3", "--settlement-days", "1")
    order_no = api.buy("100.00", channel=MANUAL).data["order_no"]
    flask("order", "paid", order_no, "--reference", "BANK-1")
    before = balances()
    shown = till.sure(order_no, "100.00")
    assert "The deposit is not credited yet." in shown.text
    _, refund = till.refund(order_no, "100.00")
    due.orders()
    desk.act(order_no, f"mark-refunded-{refund.id}", reference="BANK-7")
    assert (api.status(order_no), balances()) == ("cancelled", before)
    assert "Refunded before it was credited" in desk.order(order_no).text


def test_a_form_that_is_sent_twice_refunds_once(till, console, paid):
    order_no = paid()
    form = form_of(till.sure(order_no, "100.00"))
    first, second = (console.post(f"/console/order/{order_no}/refund", data=form) for _ in range(2))
    assert (first.status_code, second.status_code, Refund.select().count()) == (303, 303, 1)


def test_the_button_names_the_reason_or_is_left_out(desk, till, api, paid, flask, monkeypatch):
    pending = api.buy(channel=MANUAL).data["order_no"]
    assert "Refund" not in desk.order(pending).links
    assert "Refund" not in desk.order(api.sell().data["order_no"]).links
    order_no = paid()
    till.refund(order_no, "100.00")
    shown = desk.order(order_no)
    assert ("Refund" in shown.links, "can be refunded" in shown.text) == (False, False)
    wrong = paid()
    flask("order", "paid", wrong, "--reference", "BANK-2")
    open_one = desk.order(wrong)
    assert "Refund" in open_one.links, "the other payment has its own number"
    monkeypatch.setattr("gateways.manual.ManualDriver.refunds", False)
    shown = desk.order(paid())
    assert ("Refund" in shown.links, "This channel has no refunds." in shown.text) == (False, True)
    assert "disabled" in re.search(r"<button[^>]*why-not-refund[^>]*>", shown.html)[0]


def test_viewers_see_refunds_and_cannot_act(viewer, page, send, paid, till, waiting):
    (number,) = waiting("10.00")
    order_no = Refund.get(Refund.refund_no == number).order.order_no
    shown = page(f"order/{order_no}", client=viewer)
    assert (number in shown.text, "Refund" in shown.links, shown.actions) == (True, False, {})
    for path in (f"order/{order_no}/refund", "refunds/approve", "refunds/reject"):
        assert viewer.get(f"/console/{path}").status_code == 403
        assert send(path, client=viewer).status_code == 403
    assert 'name="refund_no"' not in page("refunds/?flt_state=review", client=viewer).html


def test_the_list_has_tabs_with_counts_and_finds_each_number(page, paid, till, waiting, desk, due):
    order_no = paid()
    _, refund = till.refund(order_no, "40.00")
    due.orders()
    (number,) = waiting("10.00")
    states = lambda query="": {row["Refund number"]: row["Status"] for row in page(f"refunds/{query}").rows}  # noqa: E731
    assert states() == {number: "Needs review", refund.refund_no: "To send"}
    assert states("?flt_state=review") == {number: "Needs review"}
    assert states("?flt_state=send") == {refund.refund_no: "To send"}
    assert states("?flt_state=under_way") == {}
    text = page("refunds/").text
    assert ("To approve 1" in text, "To send 1" in text, "Refunds 2" in text) == (True, True, True)
    assert "2 total · ¥50.00" in text
    desk.act(order_no, f"mark-refunded-{refund.id}", reference="BANK-7")
    assert states("?flt_state=refunded") == {refund.refund_no: "Refunded"}
    for found in (order_no, refund.refund_no, "BANK-7"):
        assert list(states(f"?search={found}")) == [refund.refund_no], found
    assert states("?search=nothing") == {}
    assert list(states("?flt_merchant=other")) == []
    assert list(states("?flt_since=today&flt_until=today")) == [number, refund.refund_no]
    assert states("?flt_until=2020-01-01") == {}


def test_the_export_has_every_column(export, till, paid):
    till.refund(paid(), "40.00", reason="broken")
    head, row = export("refunds/export").text.splitlines()
    assert head.removeprefix("\ufeff").startswith("Refund number,Merchant refund number,Created,Order,")
    assert all(each in row for each in ("40.00", "broken", "operator demo", "Merchant's balance", "Queued"))


def confirmation(client, kind, numbers):
    """The confirmation page of a bulk action on these refunds."""
    answer = client.get(f"/console/refunds/{kind}", query_string={"refund_no": numbers})
    assert answer.status_code == 200, answer.text
    return Bulk(answer.text)


def confirm(client, kind, page, **fields):
    """Send the form of a confirmation page; return the response."""
    form = {"csrf_token": page.fields["csrf_token"], "row": page.rows_sent, **fields}
    return client.post(f"/console/refunds/{kind}", data=form)


def test_selected_refunds_are_approved_together_after_their_total(console, page, waiting, desk, due):
    numbers = waiting("10.00", "20.50")
    selected = page("refunds/?flt_state=review&selected=all")
    assert selected.html.count(" checked>") == 2
    shown = confirmation(console, "approve", numbers)
    assert ("2 refunds · ¥30.50" in shown.text, "Deducted from merchants: ¥30.50." in shown.text) == (True, True)
    answer = confirm(console, "approve", shown)
    assert (answer.status_code, "2 refunds approved" in answer.text) == (200, True)
    assert [row.approved_by for row in Refund.select()] == ["operator demo"] * 2
    due.orders()
    assert [row.status for row in Refund.select()] == ["confirmed"] * 2
    again = confirmation(console, "approve", numbers)
    assert "2 refunds are left out" in again.text
    assert confirm(console, "approve", shown).status_code == 303, "each was approved before"


def test_a_change_of_one_approves_none(console, waiting, flask):
    numbers = waiting("10.00", "20.00")
    shown = confirmation(console, "approve", numbers)
    flask("refund", "reject", numbers[0], "--reason", "no")
    answer = confirm(console, "approve", shown)
    assert answer.status_code == 303
    text = f"Refund {numbers[0]} changed since this page was loaded, so no refund was approved. Check and try again."
    assert ("bad", text) in messages(console.get(answer.location).text)
    assert Refund.get(Refund.refund_no == numbers[1]).approved_by == ""


def test_selected_refunds_are_rejected_each_on_its_own(console, waiting, flask, balances):
    before = balances()
    numbers = waiting("10.00", "20.00", "30.00")
    shown = confirmation(console, "reject", numbers)
    flask("refund", "reject", numbers[0], "--reason", "no")
    answer = confirm(console, "reject", shown, reason="not agreed")
    assert ("2 refunds rejected" in answer.text, "1 refund was not changed" in answer.text) == (True, True)
    assert {row.status for row in Refund.select()} == {"cancelled"}
    assert balances()[1] == before[1]
    acts = [row.action for row in AuditEntry.select().where(AuditEntry.about.in_(["refund", "refunds"]))]
    assert acts.count("reject refunds") == 1
    assert acts.count("reject refund") >= 2


def test_one_refund_is_approved_or_rejected_on_the_orders_page(desk, waiting):
    first, second = waiting("10.00", "20.00")
    for number, act, status in ((first, "approve", "pending"), (second, "reject", "cancelled")):
        refund = Refund.get(Refund.refund_no == number)
        given = {"reason": "no"} if act == "reject" else {}
        category, _ = desk.act(refund.order.order_no, f"{act}-refund-{refund.id}", **given)
        refund = Refund.get_by_id(refund.id)
        assert (category, refund.status) == ("good", status)
    assert Refund.get(Refund.refund_no == first).approved_by == "operator demo"


def test_the_search_at_the_top_opens_a_refund_and_finds_its_other_numbers(console, page, paid, till, desk, due):
    order_no = paid()
    _, refund = till.refund(order_no, "40.00")
    due.orders()
    desk.act(order_no, f"mark-refunded-{refund.id}", reference="BANK-7")
    answer = console.get(f"/console/search/?q={refund.refund_no}")
    assert answer.location == f"/console/order/{order_no}#refund-{refund.refund_no}"
    Refund.update(merchant_refund_no="R-1").execute()
    for text in ("BANK-7", "R-1"):
        shown = page(f"search/?q={text}")
        assert [row["Refund number"] for row in shown.rows if "Refund number" in row] == [f"{refund.refund_no} R-1"]
    assert console.get(f"/console/refund/{refund.refund_no}").location == answer.location
    assert console.get("/console/refund/1").status_code == 404


class TestAboveTheLimits:
    @pytest.fixture
    def settings_of_app(self):
        return {"confirm_above": LIMIT, "second_operator_above": LIMIT}

    @pytest.fixture
    def second(self, sign_in):
        """Another operator, on the same pages."""
        operators.add("second", "second-password")
        return Desk(sign_in, "second")

    def test_the_password_is_asked_for_once_the_days_refunds_exceed_the_limit(self, sign_in, paid):
        late = Till(sign_in("demo", confirmed=False))
        order_no = paid()
        late.refund(order_no, "30.00")
        page = late.sure(order_no, "20.01")
        answer = late.client.post(f"/console/order/{order_no}/refund", data=form_of(page))
        assert (answer.status_code, "confirm-answer" in answer.text) == (403, True)
        assert Refund.select().count() == 1
        other = late.sure(paid(), "20.01")  # refunds of another order by this operator count, too
        assert late.client.post(other.forms[0].url or f"/console/order/{paid()}/refund", data=form_of(other))

    def test_another_operator_approves_what_the_first_requested(self, desk, second, till, paid, balances, due):
        order_no = paid()
        shown = till.sure(order_no, "60.00")
        assert "need a second operator" in shown.text
        (told,), refund = till.refund(order_no, "60.00")
        assert told == ("good", "Refund of ¥60.00 requested. Another operator must approve it.")
        assert (refund.approved_by, refund.status) == ("", "pending")
        key = f"approve-refund-{refund.id}"
        assert key not in desk.order(order_no).actions
        assert "another operator must approve it" in desk.order(order_no).text
        assert "another operator must approve it" in confirmation(desk.client, "approve", [refund.refund_no]).text
        assert second.act(order_no, key)[0] == "good"
        assert Refund.get_by_id(refund.id).approved_by == "operator second"

    def test_the_requester_cannot_approve_it_on_the_next_day_either(self, desk, till, paid, ahead):
        _, refund = till.refund(paid(), "60.00")
        ahead(86_400)
        page = confirmation(desk.see("") and desk.client, "approve", [refund.refund_no])
        assert page.rows_sent == []


class TestAtAChannel:
    """The driver `trial` refunds as the test sets it."""

    def test_money_of_an_exception_goes_back_through_the_channel(self, desk, api, due, balances):
        before = balances()
        order_no = api.buy("100.00").data["order_no"]
        api.play(order_no, "wrong_amount")
        exception = PaymentException.get()
        shown = desk.order(order_no)
        assert "Refund ¥101.00 through the channel" in shown.text
        category, text = desk.act(order_no, f"resolve-{exception.id}-refund")
        assert (category, text) == (
            "good",
            "Refund of ¥101.00 begun. The exception is resolved once it is completed.",
        )
        waiting = desk.order(order_no)
        assert "A refund of this money is in progress." in waiting.text
        assert [key for key in waiting.actions if key.startswith("resolve")] == []
        due.orders()
        told = desk.order(order_no).text
        assert ("Exception 1 resolved: Sent back" in told, "Refunded ¥101.00" in told) == (True, True)
        assert balances() == before

    def test_the_operator_decides_about_a_refund_that_does_not_reach_the_payer(self, desk, till, api, balances, page):
        for resolution, status, text in (
            ("complete", "Refunded", "Payer received it"),
            ("cancel", "Cancelled", "Money came back"),
        ):
            order_no = api.buy("100.00").data["order_no"]
            api.play(order_no, "success")
            before = balances()[0]
            _, refund = till.refund(order_no, "40.00")
            refund = settle.lock(refund)
            settle.apply_report(refund, Report(State.STUCK, amount=4_000, detail="account closed"))
            shown = desk.order(order_no)
            assert "Refund not received" in shown.text
            exception = PaymentException.select().order_by(PaymentException.id.desc()).get()
            form = shown.actions[f"resolve-{exception.id}-{resolution}"]
            assert text in shown.text
            assert desk.send(form)[0] == "good"
            told = desk.order(order_no).text
            assert (f"resolved: {text}" in told, f"¥40.00 {status}" in told) == (True, True), told
            assert balances() == (before - (4_000 if resolution == "complete" else 0), 0)
            assert page("exceptions/?flt_state=settled").rows[0]["Status"].startswith(text)

    def test_the_status_is_checked_at_the_channel(self, desk, till, api, due, monkeypatch):
        order_no = api.buy("100.00").data["order_no"]
        api.play(order_no, "success")
        _, refund = till.refund(order_no, "40.00")
        monkeypatch.setattr(SandboxDriver, "refund", lambda driver, request: Report(State.OPEN))
        monkeypatch.setattr(
            SandboxDriver, "query_refund", lambda driver, request: Report(State.PAID, amount=request.amount)
        )
        due.orders()
        assert Refund.get_by_id(refund.id).status == "confirmed"
        category, text = desk.act(order_no, f"check-refund-{refund.id}")
        assert (category, text) == ("good", "Channel result: refunded. Refund status: Refunded.")
        (entry,) = AuditEntry.select().where(AuditEntry.action == "check refund")
        assert (entry.about, entry.key) == ("refund", refund.refund_no)

    def test_its_callbacks_are_on_the_callbacks_pages(self, page, till, api, due):
        order_no = api.buy("100.00").data["order_no"]
        api.play(order_no, "success")
        till.refund(order_no, "40.00")
        due.orders()
        (row,) = page("callbacks/?flt_event=refund.completed").rows
        assert (row["Order number"], row["Event"]) == (order_no, "refund.completed")
        assert "refund.completed" in page(f"order/{order_no}").text

    def test_a_refund_waits_for_no_other_one_that_is_not_approved(self, till, api, due):
        order_no = api.buy("100.00").data["order_no"]
        api.play(order_no, "success")
        _, first = till.refund(order_no, "40.00")
        Refund.update(approved_by="", who="merchant", due_at=None).where(Refund.id == first.id).execute()
        _, second = till.refund(order_no, "10.00")
        due.orders()
        assert Refund.get_by_id(second.id).status == "completed"


def test_a_contradiction_without_details_is_told_in_the_readers_language(console, api, ahead, due):
    allow()
    order_no = completed(api)
    refunded(api, order_no, outcome="late_fail")
    ahead(601)
    due.orders()
    shown = console.get(f"/console/order/{order_no}", headers={"Accept-Language": "zh"}).text
    assert "退款状态：已退款。渠道：失败" in shown
