"""The search of the header."""

import pytest

from models.tables.channel import Channel
from models.tables.merchant import Merchant
from models.tables.order import PaymentException
from runtime.money import hundredths
from services.console import search
from tests.support import completed


@pytest.fixture
def opened(console):
    """`opened("A-1")`: the address to which a search redirects, None if it shows results."""
    return lambda text: console.get("/console/search/", query_string={"q": text}).location


@pytest.fixture
def found(page):
    """`found("A-1")`: the page of results."""
    return lambda text: page(f"search/?q={text}")


def number(api, **fields):
    return api.buy(**fields).data["order_no"]


def test_an_order_number_opens_its_order(api, opened):
    order_no = number(api)
    assert opened(f" {order_no} ") == f"/console/order/{order_no}"


def test_a_merchant_order_number_opens_the_only_order_that_has_it(api, opened):
    order_no = number(api, merchant_order_no="A-1")
    number(api, merchant_order_no="A-11")
    assert opened("A-1") == f"/console/order/{order_no}"


def test_a_number_of_two_merchants_shows_both_orders(api, other, opened, found):
    both = {number(api, merchant_order_no="A-1"), number(other, merchant_order_no="A-1")}
    assert opened("A-1") is None
    assert {order_no for order_no in both if order_no in found("A-1").text} == both


def test_a_part_of_a_merchant_order_number_shows_the_orders_that_contain_it(api, found):
    order_no, none = number(api, merchant_order_no="SHOP-7431"), number(api, merchant_order_no="SHOP-9")
    shown = found("743").text
    assert order_no in shown
    assert none not in shown


def test_a_short_part_links_to_the_list_of_orders(found):
    assert found("zz").links["Search parts of merchant order numbers"] == "/console/orders/?search=zz"


@pytest.mark.parametrize("text", ["77.50", "¥77.50", "77.5"])
def test_an_amount_shows_its_orders_and_says_how_far_it_searched(api, found, text, monkeypatch):
    order_no, none = number(api, cny_amount="77.50"), number(api, cny_amount="77.51")
    shown = found(text)
    assert order_no in shown.text
    assert none not in shown.text
    assert "Among the latest 100,000 orders" in shown.text
    assert shown.links["Search all orders of ¥77.50"] == "/console/orders/?flt_least=77.50&flt_most=77.50"
    monkeypatch.setattr(search, "RECENT", 1)
    assert order_no not in found(text).text


def test_a_number_that_is_an_amount_too_shows_both(api, opened, found):
    order_no, same = number(api, merchant_order_no="1234"), number(api, cny_amount="1234.00")
    assert opened("1234") is None
    shown = found("1234").text
    assert order_no in shown
    assert same in shown


def test_a_transaction_id_shows_its_order(api, found, flask_json):
    order_no = completed(api)
    reference = flask_json("order", "show", order_no)["channel_reference"]
    assert reference
    assert order_no in found(reference).text


def test_an_exception_is_found_by_its_reference_and_while_open_by_its_amount(api, found):
    order_no = number(api, cny_amount="70.00")
    api.play(order_no, "wrong_amount")
    row = PaymentException.get()
    for text in (row.reference, hundredths(row.amount)):
        shown = found(text)
        assert order_no in shown.text
        assert "Exceptions" in shown.text


def test_merchants_and_channels_are_found_by_name(found):
    merchant, channel = Merchant.get(Merchant.key == "demo"), Channel.get_by_id(2)
    assert found(merchant.name[:4].lower()).links[merchant.name] == "/console/merchant/demo"
    assert found(channel.name).links[channel.name] == "/console/channel/2"


@pytest.mark.parametrize(("text", "url"), [("balan", "/console/ledger/"), ("余额", "/console/ledger/")])
def test_pages_are_found_in_both_languages(found, text, url):
    assert url in found(text).links.values()


def test_a_page_that_is_not_in_the_menu_is_found(found):
    assert found("payment link").links["New payment link"] == "/console/new-order/"


def test_only_administrators_find_pages_that_only_they_can_use(found, page, viewer):
    assert "New merchant" in found("new merchant").links
    assert "New merchant" not in page("search/?q=new merchant", client=viewer).links


@pytest.mark.parametrize("text", ["", "   ", "\u202e", "\x00", "%", "_", "'", '"', "<b>", "x" * 400, "1" * 300])
def test_any_text_gets_a_page(console, text):
    assert console.get("/console/search/", query_string={"q": text}).status_code == 200


def test_nothing_found_says_so(found):
    assert "No results" in found("nothing like it").text
