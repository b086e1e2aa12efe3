"""The payment page of a deposit that was refunded, whole or in part."""

import re

import pytest

from gateways.sandbox.records import books
from models.tables.merchant import Merchant
from models.tables.refund import Refund
from services.merchants import cache
from tests.support import completed


@pytest.fixture
def refund(api, flask):
    """`refund(order_no, "40.00", "success")` refunds a deposit with this outcome at the channel."""
    Merchant.update(refund_mode="automatic", refund_auto_max=100_000).where(Merchant.key == "demo").execute()
    cache.forget()

    def request(order_no, amount, outcome="success"):
        flask("channel", "set", "2", "--config", f"refund={outcome}")
        number = f"N{Refund.select().count()}"
        fields = {"order_no": order_no, "cny_amount": amount, "merchant_refund_no": number}
        return api.call("createRefund", fields).data

    return request


@pytest.fixture
def page(http):
    """`page(order_no)`: the state of the payment page, and its visible details by label."""

    def read(order_no, language="en"):
        html = http(
            "GET", f"/addons/paychannel/pay/index?order_no={order_no}", headers={"Accept-Language": language}
        ).text
        rows = re.findall(r"<div><dt>(.*?)</dt><dd>(.*?)</dd></div>", html, re.DOTALL)
        return re.search(r'data-state="(\w+)"', html)[1], {label: re.sub("<[^>]*>", "", value) for label, value in rows}

    return read


def test_a_part_is_shown_with_amount_and_time(api, refund, page):
    order_no = completed(api)
    refund(order_no, "40.00")
    state, details = page(order_no)
    assert state == "completed"
    assert re.fullmatch(r"¥40\.00, \d{4}-\d\d-\d\d \d\d:\d\d:\d\d \(UTC\+8\)", details["Refunded"])


def test_a_refund_in_progress_is_shown_as_such_until_it_is_completed(api, refund, page, later):
    order_no = completed(api)
    refund_no = refund(order_no, "40.00", "silent")["refund_no"]
    assert page(order_no)[1]["Refund in progress"] == "¥40.00"
    assert page(order_no, "zh")[1]["退款处理中"] == "¥40.00"
    books().set_refund_outcome(refund_no, "success")
    later(301)
    assert "Refund in progress" not in page(order_no)[1]


def test_a_whole_refund_changes_the_page_and_does_not_lead_back_to_the_shop(api, refund, page, http, flask):
    flask("merchant", "page", "demo", "--return-url", "https://shop.example/{order_no}")
    order_no = completed(api)
    refund(order_no, "100.00")
    state, details = page(order_no)
    assert (state, "Refunded" in details) == ("refunded", True)
    live = http("GET", f"/addons/paychannel/pay/status?order_no={order_no}").data
    assert (live["state"], live["can_return"]) == ("refunded", False)


def test_a_refused_refund_is_not_shown(api, refund, page):
    order_no = completed(api)
    refund(order_no, "40.00", "fail")
    state, details = page(order_no)
    assert state == "completed"
    assert not {"Refunded", "Refund in progress"} & set(details)
