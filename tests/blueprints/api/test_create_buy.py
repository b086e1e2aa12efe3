"""Creating deposits over HTTP."""

import json
import re
import time
from datetime import UTC, datetime, timedelta

import pytest

from tests.support import CARD, PERSON, signed, types_of

FIELDS = {"order_type": 1, "cny_amount": "1", "paychannel_id": 2, "paychannel_paymethod": "wxpay"}


def test_the_response_has_the_sent_values_and_the_amounts(api):
    before = int(time.time())
    answer = api.buy("100.00", merchant_order_no="A-1", paychannel_paymethod="alipay")
    assert (answer.status, answer.code, answer.json["msg"]) == (200, 1, "order created")
    assert list(answer.json) == ["code", "msg", "data", "time"]
    placed = answer.data
    assert before <= placed["createtime"] <= time.time()
    assert answer.json["time"] == str(placed.pop("createtime"))
    order_no = placed.pop("order_no")
    assert placed.pop("pay_url").endswith(f"/addons/paychannel/pay/index?order_no={order_no}")
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


def test_the_fee_is_rounded_half_up_to_the_fen(api):
    fees = {"0.01": 0, "0.83": 0, "0.84": 1, "2.50": 2, "7.49": 4, "7.50": 5, "1000000.00": 600_000}
    for amount, fee in fees.items():
        placed = api.buy(amount).data
        assert placed["service_amount"] == fee, amount
        assert placed["merchant_actual_amount"] == placed["deposit_amount"] - fee


def test_an_order_keeps_the_rate_that_it_was_created_with(api, flask):
    before = api.buy().data["order_no"]
    flask("merchant", "set", "demo", "--buy-rate", "2.5")
    assert api.buy().data["service_amount"] == 250
    shown = api.detail(order_no=before).data
    assert (shown["service_rate"], shown["merchant_actual_amount"]) == ("0.60", 9_940)


def test_the_merchants_own_number_is_returned_unchanged_and_need_not_be_unique(api):
    for number in ("", "A-1", "A-1", "订单 1", "x" * 255, "订" * 255, "%_\\'\"<b>", "𝒜🧧"):
        placed = api.buy(merchant_order_no=number).data
        assert placed["merchant_order_no"] == number
        assert api.detail(order_no=placed["order_no"]).data["merchant_order_no"] == number
    assert api.listed(merchant_order_no="A-1").data["total"] == 2


def test_an_optional_field_may_be_absent_or_null_and_the_customers_name_is_not_shown(api):
    for fields in ({}, {"merchant_order_no": None}, {"customer_name": None}):
        assert api.buy(**fields).data["merchant_order_no"] == ""
    answer = api.buy(customer_name="李四")
    assert (answer.code, "李四" in answer.text) == (1, False)


def test_every_linked_channel_accepts_deposits_by_each_of_its_methods_only(api, other):
    for channel in (1, 2, 3):
        for method in ("wxpay", "alipay", "bank"):
            assert api.buy(channel=channel, paychannel_paymethod=method).data["payment_method"] == method
    assert other.buy(channel=4, paychannel_paymethod="alipay").code == 1
    answer = other.buy(channel=4, paychannel_paymethod="wxpay")
    assert (answer.code, list(answer.data)) == (42200, ["paychannel_paymethod"])


def test_an_absent_or_foreign_channel_has_the_same_response_and_a_disabled_one_says_so(api, flask):
    flask("channel", "set", 4, "--disabled")
    answers = {channel: api.buy(channel=channel) for channel in (4, 999, 2**63 - 1)}
    flask("channel", "set", 3, "--disabled")
    assert (api.buy(channel=3).code, "channel not found: disabled" in api.buy(channel=3).text) == (40403, True)
    assert {answer.text for answer in answers.values()} == {answers[999].text}
    assert answers[999].code == 40403


def test_a_deposit_is_cancelled_if_the_channel_refuses_it_and_stays_pending_without_its_response(api, flask):
    usual = api.buy()
    flask("channel", "set", 2, "--config", "open=refuse")
    assert api.buy(merchant_order_no="A-1").code == 50201
    assert api.detail(merchant_order_no="A-1").data["status"] == "cancelled"
    flask("channel", "set", 2, "--config", "open=timeout")
    answer = api.buy()
    assert (answer.code, types_of(answer.data)) == (1, types_of(usual.data))
    assert api.status(answer.data["order_no"]) == "pending"


# The fields: all invalid ones are named in one response


# Values of a wrong type and other numbers: `test_hostile_bodies.py`, `test_numbers.py`.
INVALID = {
    "order_type": [None, "", 0, 3, "buy"],
    "cny_amount": [None, "", 0],
    "paychannel_id": [None, "", 0],
    "paychannel_paymethod": [None, "", "cash", "WXPAY", "wxpay,alipay"],
    "merchant_order_no": ["x" * 256, 1],
    "customer_name": [1],
}


@pytest.mark.usefixtures("nothing_changes")
@pytest.mark.parametrize(("order_type", "names"), [(1, INVALID), (2, FIELDS)], ids=["deposit", "withdrawal"])
def test_an_invalid_field_is_named_and_no_other(api, order_type, names):
    for field in names:
        for value in INVALID[field]:
            answer = api.call("createOrder", FIELDS | {"order_type": order_type} | {field: value})
            assert (answer.status, answer.code, list(answer.data)) == (422, 42200, [field]), value
            assert all(type(message) is str for message in answer.data[field])


@pytest.mark.usefixtures("nothing_changes")
def test_all_errors_are_reported_together(api):
    for missing in FIELDS:
        answer = api.call("createOrder", {name: value for name, value in FIELDS.items() if name != missing})
        assert (answer.code, list(answer.data)) == (42200, [missing])
    assert api.call("createOrder", {}).data.keys() == FIELDS.keys()
    wrong = {"paychannel_paymethod": "cash", "merchant_order_no": "x" * 256, "customer_name": 1, "colour": "red"}
    assert api.buy("1.005", **wrong).data.keys() == {"cny_amount", *wrong}
    for order_type in (None, 3, "buy"):  # whether the customer's name is allowed depends on it
        answer = api.buy(channel=1, order_type=order_type, customer_name="李四")
        assert (answer.code, list(answer.data)) == (42200, ["order_type"])


@pytest.mark.usefixtures("nothing_changes")
def test_a_deposit_accepts_no_gateway_a_objects_and_no_parameters_in_the_query(api):
    for channel in (1, 2, 3):
        answer = api.buy(channel=channel, gatewaya_personal_data=PERSON, gatewaya_card_info=CARD)
        assert (answer.code, set(answer.data)) == (42200, {"gatewaya_personal_data", "gatewaya_card_info"})
    body = signed("createOrder", FIELDS | {"debug": "1"})
    body.pop("debug")
    answer = api.post("createOrder", json.dumps(body).encode(), query="?debug=1")
    assert (answer.code, list(answer.data)) == (42200, ["debug"])


def test_an_amount_must_be_within_the_channels_limits(api, flask):
    for amount, code in (("0.01", 1), ("1000000.00", 1), ("1000000.01", 42200)):  # by default
        assert api.buy(amount).code == code, amount
    flask("channel", "set", 2, "--min", "10", "--max", "20.00")
    for amount, code in (("9.99", 42200), ("10.00", 1), ("20.00", 1), ("20.01", 42200)):
        answer = api.buy(amount)
        assert answer.code == code, amount
        assert code == 1 or list(answer.data) == ["cny_amount"]
    flask("channel", "set", 2, "--pay-method", "bank")
    answer = api.buy("1", merchant_order_no="x" * 256)
    assert set(answer.data) == {"cny_amount", "paychannel_paymethod", "merchant_order_no"}
