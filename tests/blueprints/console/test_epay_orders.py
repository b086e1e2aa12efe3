"""Orders that came through the epay gateway: their page, and that of their notice."""

from urllib.parse import urlencode

import pytest

from tests.epay_shop import FORM, Shop, number_in
from tests.pages import CHOOSE


@pytest.fixture
def settings_of_app():
    """The shop's server has a private address."""
    return {"private_callbacks": True}


@pytest.fixture
def epay_shop(http, web_server, flask_json):
    """A shop at the gateway. Alipay leads to one channel, everything else to several."""
    hosts = ("--host", "127.0.0.1", "--host", "localhost")
    types = ("--type", "alipay=2", "--type", "wxpay=1", "--type", "wxpay=2")
    return Shop(http, web_server, flask_json("epay", "enable", "demo", *hosts, *types))


@pytest.fixture
def facts(page):
    """`facts(number)`: what the card of the shop's request says on the order's page; empty without the card."""

    def read(number, **how):
        text = page(f"order/{number}", **how).text
        return text.partition("Payment by the shop (epay)")[2].partition(" Money ")[0].strip()

    return read


def test_an_order_shows_what_the_shop_asked_for(epay_shop, api, page, facts, viewer, send):
    query = {"notify_url": "http://127.0.0.1/n?token=sesame", "return_url": "http://127.0.0.1/back?user=sesame"}
    number = epay_shop.mapi(param="user-9", **query)["trade_no"]
    for how in ({}, {"client": viewer}):
        assert facts(number, **how) == (
            f"Shop’s order number out_trade_no SHOP-1 Number for the shop trade_no {number} Payment type type alipay "
            "Product name 会员 1 month Shop’s own data param *** "
            "Notices to notify_url http://127.0.0.1/n?token=*** "
            "Payer returns to return_url http://127.0.0.1/back?user=*** Version 1 (MD5)"
        )
    assert "user-9" not in page(f"order/{number}").html
    assert "user-9" in send(f"order/{number}/reveal").text
    api.play(number, "wrong_amount")
    decision = page(f"order/{number}")
    assert "name=会员 1 month money=12.50 trade_status=TRADE_SUCCESS param=***" in decision.text, "what it would send"
    assert "user-9" not in decision.html
    number = epay_shop.mapi(out_trade_no="SHOP-2", type=None)["trade_no"]
    chosen = {"order_no": number, "choice": "2-wxpay"}
    assert epay_shop.send("POST", CHOOSE, urlencode(chosen).encode(), FORM).status == 303
    assert "Payment type type none, the payer chose the payment method" in facts(number)


def test_other_orders_have_no_such_card(epay_shop, api, facts, page):
    api.play(epay_shop.mapi()["trade_no"], "success")
    orders = [api.buy("12.50", merchant_order_no=number).data["order_no"] for number in ("SHOP-1", "OTHER", "")]
    assert [facts(order_no) for order_no in orders] == ["", "", ""]
    api.play(orders[0], "success")
    assert page("callbacks/?flt_event=epay.notify").column("Event") == ["epay.notify"]


def test_orders_of_one_payment_are_linked_until_an_earlier_one_counts_after_all(epay_shop, api, page, later, flask):
    first = epay_shop.mapi()["trade_no"]
    later(901)
    second = number_in(epay_shop.mapi()["payurl"])
    later(901)
    third = number_in(epay_shop.mapi()["payurl"])
    numbers = (first, second, third)
    shown = [page(f"order/{number}") for number in numbers]
    urls = [f"/console/order/{number}" for number in numbers]
    assert [[each.links.get(number) for number in numbers] for each in shown] == [
        [None, urls[1], None],
        [urls[0], None, urls[2]],
        [None, urls[1], None],
    ]
    assert f"Replaced by {second}" in shown[0].text
    assert f"Replaces {first} Replaced by {third}" in shown[1].text
    assert f"Replaces {second}" in shown[2].text
    api.play(first, "late")
    later(901)
    flask("order", "resolve", first, "--complete", "--yes")
    texts = [page(f"order/{number}").text for number in numbers]
    assert (f"Replaces {third} " in texts[0], "Replaced by" in texts[0]) == (True, False)
    assert f"Replaced by {first} " in texts[2]


def test_a_notices_page_shows_its_address_its_fields_and_why_it_is_repeated(
    epay_shop, api, due, ahead, page, flask_json, viewer
):
    epay_shop.answers = ["<b>not yet</b>", "success"]
    number = epay_shop.mapi(param="user-9", notify_url=f"{epay_shop.notify_url}?token=sesame")["trade_no"]
    api.play(number, "success")
    due()
    (notice,) = flask_json("callback", "list")
    shown = page(f"callback/{notice['id']}", client=viewer)
    assert f"Destination GET {epay_shop.notify_url}?token=*** Created" in shown.text
    assert "<b>not yet</b> The shop confirms a notice with the body “success”" in shown.text
    assert "Waiting" in shown.text
    assert f"trade_no={number} out_trade_no=SHOP-1 type=alipay name=会员 1 month money=12.50" in shown.text
    assert "param=***" in shown.text
    ahead(6)
    due()
    assert "Delivered" in page(f"callback/{notice['id']}").text


def test_a_notice_is_sent_again_although_the_merchant_has_no_callback_url(epay_shop, desk, api, due, flask):
    flask("merchant", "set", "demo", "--events", "paid,completed", "--callback-url", "")
    flask("epay", "set", "demo", "--webhooks")
    number = epay_shop.mapi()["trade_no"]
    api.play(number, "success")
    due()
    (again,) = [key for key in desk.order(number).actions if key.startswith("redeliver-")]
    assert desk.act(number, again)[0] == "good"
    due()
    assert len(epay_shop.notices) == 2
