"""Creating deposits over HTTP."""

import re
import time
from datetime import UTC, datetime, timedelta

import pytest

from tests.support import types_of

CREATED_BUY = {
    "order_no": str,
    "merchant_order_no": str,
    "status": str,
    "order_type": int,
    "cny_amount": str,
    "payment_method": str,
    "merchant_amount": str,
    "deposit_amount": int,
    "service_amount": int,
    "merchant_actual_amount": int,
    "pay_url": str,
    "createtime": int,
}


def test_the_response_has_exactly_the_fields_of_the_contract(api):
    answer = api.buy("100.00", merchant_order_no="A-1")
    assert (answer.status, answer.code, answer.json["msg"]) == (200, 1, "order created")
    assert list(answer.json) == ["code", "msg", "data", "time"]
    assert types_of(answer.data) == CREATED_BUY


def test_the_sent_values_are_returned_with_the_amounts(api):
    placed = api.buy("100.00", merchant_order_no="A-1", paychannel_paymethod="alipay").data
    for generated in ("order_no", "pay_url", "createtime"):
        placed.pop(generated)
    assert placed == {
        "merchant_order_no": "A-1",
        "status": "pending",
        "order_type": 1,
        "cny_amount": "100.00",
        "payment_method": "alipay",
        "merchant_amount": "100.00",
        "deposit_amount": 10_000,
        "service_amount": 60,
        "merchant_actual_amount": 9_940,
    }


def test_time_is_unix_seconds_as_text(api):
    before = int(time.time())
    answer = api.buy()
    stamp = answer.json["time"]
    assert type(stamp) is str
    assert before <= int(stamp) <= time.time()
    assert answer.data["createtime"] == int(stamp)


def test_the_order_number_is_the_date_in_china_and_then_random(api):
    numbers = {api.buy().data["order_no"] for _ in range(20)}
    assert len({number[8:12] for number in numbers}) > 10
    for number in numbers:
        assert re.fullmatch(r"[0-9]{24}", number)
        day = datetime.strptime(number[:8], "%Y%m%d").replace(tzinfo=UTC)
        assert abs(datetime.now(UTC) + timedelta(hours=8) - day) < timedelta(days=1, minutes=1)


@pytest.mark.parametrize("settings_of_app", [{"site_url": "https://pay.example.com", "api_prefix": "/api"}])
def test_the_pay_url_is_on_the_site_whatever_the_prefix(api, http, settings_of_app):
    api.send = lambda method, path, *rest: http(method, "/api" + path, *rest)
    placed = api.buy().data
    assert placed["pay_url"] == f"https://pay.example.com/addons/paychannel/pay/index?order_no={placed['order_no']}"


@pytest.mark.parametrize(
    ("amount", "fee"),
    [("0.01", 0), ("0.83", 0), ("0.84", 1), ("2.50", 2), ("7.49", 4), ("7.50", 5), ("1000000.00", 600_000)],
)
def test_the_fee_is_rounded_half_up_to_the_fen(api, amount, fee):
    placed = api.buy(amount).data
    assert placed["service_amount"] == fee
    assert placed["merchant_actual_amount"] == placed["deposit_amount"] - fee


def test_an_order_keeps_the_rate_that_it_was_created_with(api, flask):
    before = api.buy().data["order_no"]
    flask("merchant", "set", "demo", "--buy-rate", "2.5")
    assert api.detail(order_no=before).data["service_rate"] == "0.60"
    assert api.buy().data["service_amount"] == 250
    assert api.detail(order_no=before).data["merchant_actual_amount"] == 9_940


@pytest.mark.parametrize("number", ["", "A-1", "订单 1", "x" * 255, "订" * 255, "%_\\'\"<b>", "𝒜🧧"])
def test_the_merchants_own_number_is_returned_unchanged(api, number):
    placed = api.buy(merchant_order_no=number).data
    assert placed["merchant_order_no"] == number
    assert api.detail(order_no=placed["order_no"]).data["merchant_order_no"] == number


@pytest.mark.parametrize("fields", [{}, {"merchant_order_no": None}, {"customer_name": None}])
def test_an_optional_field_may_be_absent_or_null(api, fields):
    assert api.buy(**fields).data["merchant_order_no"] == ""


def test_the_merchants_own_number_need_not_be_unique(api):
    assert api.buy(merchant_order_no="A-1").data["order_no"] != api.buy(merchant_order_no="A-1").data["order_no"]


def test_a_customers_name_is_accepted_and_not_shown(api):
    answer = api.buy(customer_name="李四")
    assert answer.code == 1
    assert "李四" not in answer.text


@pytest.mark.parametrize("channel", [1, 2, 3])
@pytest.mark.parametrize("method", ["wxpay", "alipay", "bank"])
def test_every_linked_channel_accepts_deposits_by_each_of_its_methods(api, channel, method):
    assert api.buy(channel=channel, paychannel_paymethod=method).data["payment_method"] == method


def test_an_absent_disabled_or_foreign_channel_has_the_same_response(api, flask):
    flask("channel", "set", 3, "--disabled")
    answers = {channel: api.buy(channel=channel) for channel in (3, 4, 999, 2**63 - 1)}
    assert {answer.text for answer in answers.values()} == {answers[999].text}
    assert answers[999].code == 40403


def test_a_deposit_that_the_channel_refuses_is_cancelled(api, flask):
    flask("channel", "set", 2, "--config", "open=refuse")
    assert api.buy(merchant_order_no="A-1").code == 50201
    assert api.detail(merchant_order_no="A-1").data["status"] == "cancelled"


def test_a_deposit_without_a_response_of_the_channel_stays_pending(api, flask):
    flask("channel", "set", 2, "--config", "open=timeout")
    answer = api.buy(merchant_order_no="A-1")
    assert answer.code == 1
    assert types_of(answer.data) == CREATED_BUY
    assert api.status(answer.data["order_no"]) == "pending"
