"""Payments with several orders: money for an earlier one, closed payments, and payers who come back."""

import pytest

from tests.blueprints.epay.test_payments import choices, choose
from tests.epay_shop import number_in
from tests.pages import BACK


@pytest.fixture
def two(shop, api, later):
    """The numbers of two orders of one payment. The first is cancelled; its payer paid it after all."""
    first = shop.mapi()["trade_no"]
    later(901)
    second = number_in(shop.mapi()["payurl"])
    api.play(first, "late")
    return first, second


@pytest.mark.parametrize("kind", ["alipay", None])
def test_an_old_request_is_not_ordered_again(kind, shop, later):
    assert shop.mapi(type=kind)["code"] == 1
    later(2 * 86_400)
    assert shop.mapi(type=kind) == {"code": -1, "msg": "This order has ended. Use a new out_trade_no"}


def test_an_order_is_not_completed_while_a_newer_one_can_be_paid(two, shop, api, flask, refuses, due, visit):
    first, second = two
    assert f"continues with order {second}" in flask("order", "show", first).output
    assert visit(first).status == 200  # its payer is not asked to pay again
    assert "continues with another order" in refuses("order", "resolve", first, "--complete", "--yes")
    api.play(second, "success")
    due()
    assert "continues with another order" in refuses("order", "resolve", first, "--complete", "--yes")
    assert [notice["trade_no"] for notice in shop.notices] == [first]


def test_an_earlier_order_that_is_completed_counts_for_the_shop(two, shop, api, later, due, flask, receiver, http):
    first, second = two
    flask("merchant", "set", "demo", "--callback-url", receiver.url)
    later(901)
    assert api.status(second) == "cancelled"
    flask("order", "resolve", first, "--complete", "--yes")
    due()
    assert [(notice["trade_no"], notice["money"]) for notice in shop.notices] == [(first, "12.50")]
    assert receiver.got == []
    assert shop.api("order", out_trade_no="SHOP-1")["status"] == 1
    assert "paid already" in shop.mapi()["msg"]
    assert shop.notices[0]["sign"] in http("GET", f"{BACK}?order_no={first}").headers["Location"]
    assert number_in(http("GET", f"{BACK}?order_no={second}").headers["Location"]) == second


def test_of_two_late_orders_only_one_is_completed(two, shop, api, later, due, flask, refuses):
    first, second = two
    later(901)
    api.play(second, "late")
    flask("order", "resolve", first, "--complete", "--yes")
    assert "continues with another order" in refuses("order", "resolve", second, "--complete", "--yes")
    flask("order", "resolve", second, "--refund", "--yes")
    due()
    assert len(shop.notices) == 1


@pytest.mark.parametrize("kind", ["alipay", "wxpay", None])
def test_a_closed_payment_is_never_opened_again(kind, rsa_shop, api, visit, http):
    seen = rsa_shop.signed(2, type=kind)
    number = rsa_shop.v2("pay/create", **rsa_shop.fields(type=kind))["trade_no"]
    if kind != "alipay":
        choose(http, number, "1-wxpay")
    assert rsa_shop.v2("pay/close", trade_no=number)["code"] == 0
    assert api.status(number) == "cancelled"
    assert choices(visit(number)) == []
    choose(http, number, "2-wxpay")
    assert rsa_shop.post("/api/pay/submit", seen).status == 400
    assert api.listed(merchant_order_no="SHOP-1").data["total"] == 1


def test_a_payment_that_expired_can_be_closed_for_good_unless_its_money_arrived_late(rsa_shop, api, later):
    number = rsa_shop.mapi()["trade_no"]
    later(901)
    assert rsa_shop.v2("pay/close", trade_no=number)["code"] == 0
    assert rsa_shop.mapi()["code"] == -1
    paid_late = rsa_shop.mapi(out_trade_no="SHOP-2")["trade_no"]
    api.play(paid_late, "late")
    assert rsa_shop.v2("pay/close", trade_no=paid_late)["code"] == -1


@pytest.mark.parametrize("disabled", [("epay", "disable", "demo"), ("merchant", "set", "demo", "--disabled")])
def test_a_payer_cannot_choose_a_channel_of_a_disabled_merchant(disabled, shop, api, flask, visit, http):
    number = shop.mapi(type=None)["trade_no"]
    flask(*disabled)
    page = visit(number)
    assert (page.status, choices(page)) == (200, [])
    choose(http, number, "1-wxpay")
    flask("epay", "enable", "demo")
    flask("merchant", "set", "demo", "--enabled")
    assert api.listed(merchant_order_no="SHOP-1").data["total"] == 0
    assert len(choices(visit(number))) == 3


def test_a_payer_who_may_have_paid_is_not_told_to_order_again(shop, api):
    api.play(shop.mapi()["trade_no"], "late")
    for changed in ({}, {"name": "Other"}):
        page = shop.submit(**changed)
        assert page.status == 400
        assert "do not pay again" in page.text
        assert "You have not paid" not in page.text


def test_after_a_restore_an_order_gets_no_number_that_its_channel_may_know(shop, api, flask, visit, http, ahead):
    number = shop.mapi(type=None)["trade_no"]
    ahead(2)
    flask("db", "mark-restored")
    assert choices(visit(number)) == []
    choose(http, number, "2-alipay")
    assert api.listed(merchant_order_no="SHOP-1").data["total"] == 0
    again = shop.mapi(type=None)["trade_no"]
    assert again != number
    assert shop.mapi(type=None)["trade_no"] == again
    assert len(choices(visit(again))) == 3
