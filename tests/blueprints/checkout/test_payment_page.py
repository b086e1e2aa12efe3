"""The page behind `pay_url`: its content in each state and language, its live status, and the payer's claim."""

import base64
import re
import time
from datetime import datetime, timedelta, timezone

import pytest

from gateways.sandbox.driver import SandboxDriver
from services.sandbox import seeding
from tests.pages import CASHIER, CLAIM, FORM, STATUS, Seen

STATES = {  # the order's status, and the heading
    "pending": ("pending", "Scan with WeChat to pay", "微信扫码支付"),
    "paid": ("paid", "Confirming your payment", "正在确认到账"),
    "confirmed": ("confirmed", "Payment received", "已收到付款"),
    "completed": ("completed", "Payment complete", "支付成功"),
    "cancelled": ("cancelled", "Order closed", "订单已关闭"),
    "checking": ("pending", "Payment received, being checked", "已收到付款，正在核对"),
    "expired": ("pending", "Payment time expired", "支付已超时"),
    "late": ("cancelled", "Payment received, being checked", "已收到付款，正在核对"),
    "refunded": ("cancelled", "Payment sent back", "付款已退回"),
}


@pytest.mark.parametrize("state", STATES)
def test_each_state_shows_its_own_panel_in_the_browsers_language(state, reach, visit, http):
    order_no, (status, *headings) = reach(state), STATES[state]
    for which, language in enumerate(("en-US,en", "zh-CN,zh;q=0.9,en;q=0.1")):
        answer = visit(order_no, language)
        page = Seen(answer.text)
        assert (answer.status, page.state) == (200, state)
        assert headings[which] in page.texts
        others = {row[which + 1] for row in STATES.values()} - {headings[which]}
        assert not others & set(page.texts)
        assert "100.00" in page.text
        assert order_no in page.text
        assert f'lang="{("en", "zh")[which]}' in answer.text
        if which:
            in_english = {"Demo", "Shop", "English"}  # the merchant's own name, and the other language
            assert set(re.findall(r"[A-Za-z]{2,}", page.text)) <= in_english
        else:
            assert ("QR" in page.text or "Scan this code" in page.text) is (state == "pending")

    answer = http("GET", f"{STATUS}?order_no={order_no}")
    assert (answer.status, answer.code) == (200, 1)
    assert set(answer.json) == {"code", "msg", "data"}
    left, received = answer.data["seconds_left"], answer.data["received_at"]
    facts = {"status": status, "state": state, "ready": True, "moved": False, "checking": state in ("checking", "late")}
    facts |= {"seconds_left": left, "received_at": received, "can_return": False}
    assert answer.data == facts
    assert isinstance(received, int) is (state in ("confirmed", "completed"))
    assert isinstance(left, int)
    assert 0 <= left <= 900
    assert (left == 0) is (state in ("expired", "late", "refunded"))
    assert "no-store" in answer.headers["Cache-Control"]


def test_the_pending_page_has_a_countdown_and_an_inline_qr_code(api, visit):
    answer = visit(api.buy().data["order_no"])
    assert re.search(r'id="countdown"[^>]*>\s*1[45]:\d\d\s*<', answer.text)
    (code,) = [address for address in Seen(answer.text).addresses if address.startswith("data:image/png;base64,")]
    assert base64.b64decode(code.partition(",")[2]).startswith(b"\x89PNG")


def test_the_sandbox_offers_its_outcomes_until_the_order_is_completed(demo, reach, visit):
    assert visit(reach("pending")).text.count('name="outcome"') == 7
    cancelled = Seen(visit(reach("cancelled")).text).text
    assert seeding.PAGE["contact"] in cancelled
    assert "New order" in cancelled
    assert "Choose the result of this test payment" not in Seen(visit(reach("completed")).text).text


def test_a_manual_channel_shows_where_to_pay_and_no_outcomes(api, visit):
    page = Seen(visit(api.buy(channel=3, paychannel_paymethod="bank").data["order_no"]).text)
    for text in ("Transfer exactly ¥100.00", "Demo Shop Ltd.", "6222 0200 0000 0000 001", "I have paid"):
        assert text in page.text
    assert "Choose the result of this test payment" not in page.text


def test_a_late_payment_is_received_and_checked_and_not_closed_or_failed(reach, visit):
    page = Seen(visit(reach("late")).text)
    assert "Your payment arrived after this order had ended." in page.text
    assert "Order closed" not in page.texts


def test_a_payment_that_differs_is_named_as_such_until_it_is_credited_elsewhere(reach, visit, flask):
    order_no = reach("checking")
    assert "We received a payment that differs from this order" in Seen(visit(order_no).text).text
    flask("order", "resolve", order_no, "--credit")
    assert Seen(visit(order_no).text).state == "cancelled"


def test_the_page_has_the_time_in_china_at_which_the_payment_was_confirmed(api, flask, ahead, due, http, visit):
    flask("channel", "set", 2, "--settlement-days", 1)
    order_no = api.buy().data["order_no"]
    api.play(order_no, "success")
    received = http("GET", f"{STATUS}?order_no={order_no}").data["received_at"]
    ahead(3 * 86_400)
    due()
    assert api.status(order_no) == "completed"
    assert http("GET", f"{STATUS}?order_no={order_no}").data["received_at"] == received
    shown = datetime.fromtimestamp(received, timezone(timedelta(hours=8)))
    assert f"Received at {shown:%Y-%m-%d %H:%M:%S} (UTC+8)" in Seen(visit(order_no).text).text


@pytest.mark.parametrize("state", ["late", "checking"])
def test_money_was_received_when_it_arrived_and_not_when_an_operator_completed_the_order(
    state, reach, flask, ahead, http, api
):
    order_no, arrived = reach(state), time.time()
    ahead(86_400)
    flask("order", "resolve", order_no, "--complete", typed="y\n")
    received = http("GET", f"{STATUS}?order_no={order_no}").data["received_at"]
    assert api.status(order_no) == "completed"
    assert abs(received - arrived) < 60


def test_a_payers_claim_makes_a_manual_order_paid_and_credits_nothing(api, http, balances, flask_json, visit):
    order_no = api.buy(channel=3).data["order_no"]
    answer = http("POST", CLAIM, f"order_no={order_no}".encode(), FORM)
    assert answer.status == 303
    assert answer.headers["Location"] == f"{CASHIER}?order_no={order_no}"
    assert api.status(order_no) == "paid"
    assert balances() == (1_000_000, 0)
    http("POST", CLAIM, f"order_no={order_no}".encode(), FORM)
    assert [step["to"] for step in flask_json("order", "show", order_no)["history"]] == ["pending", "paid"]
    assert "I have paid" not in Seen(visit(order_no).text).text


def test_a_payers_claim_has_no_effect_on_other_channels(reach, http, api):
    for state in ("pending", "completed", "cancelled"):
        order_no = reach(state)
        before = api.detail(order_no=order_no).data
        assert http("POST", CLAIM, f"order_no={order_no}".encode(), FORM).code == 40401
        assert api.detail(order_no=order_no).data == before
    for path, method in ((CASHIER, "POST"), (STATUS, "POST"), (CLAIM, "GET")):
        assert http(method, path).code == 40500


def test_a_driver_that_opens_locally_is_called_when_the_page_is_shown_and_not_before(api, visit, monkeypatch):
    asked, really_open = [], SandboxDriver.open_payment

    def counted(driver, payment):
        asked.append(payment.order_no)
        return really_open(driver, payment)

    monkeypatch.setattr(SandboxDriver, "open_payment", counted)
    order_no = api.buy().data["order_no"]
    assert asked == []
    assert "data:image/png" in visit(order_no).text
    assert asked == [order_no]
