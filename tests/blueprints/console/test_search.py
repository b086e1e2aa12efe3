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


def test_a_number_opens_its_only_order_and_otherwise_all_that_have_or_contain_it_are_shown(api, other, opened, found):
    order_no, longer = number(api, merchant_order_no="A-7431"), number(api, merchant_order_no="A-74310")
    for text in (f" {order_no} ", "A-7431"):
        assert opened(text) == f"/console/order/{order_no}"
    none, same = number(api, merchant_order_no="A-9"), number(other, merchant_order_no="A-7431")
    assert opened("A-7431") is None
    for text, shown in (("A-7431", [order_no, same]), ("743", [order_no, longer, same])):
        assert [each for each in (order_no, longer, none, same) if each in found(text).text] == shown
    assert found("zz").links["Search parts of merchant order numbers"] == "/console/orders/?search=zz"
    assert "No results" in found("nothing like it").text


def test_an_amount_shows_its_orders_and_says_how_far_it_searched(api, found, monkeypatch):
    order_no, none = number(api, cny_amount="77.50"), number(api, cny_amount="77.51")
    for text in ("77.50", "¥77.50", "77.5"):
        shown = found(text)
        assert (order_no in shown.text, none in shown.text) == (True, False)
        assert "Among the latest 100,000 orders" in shown.text
        assert shown.links["Search all orders of ¥77.50"] == "/console/orders/?flt_least=77.50&flt_most=77.50"
    monkeypatch.setattr(search, "RECENT", 1)
    assert order_no not in found("77.50").text


def test_a_number_that_is_an_amount_too_shows_both(api, opened, found):
    order_no, same = number(api, merchant_order_no="1234"), number(api, cny_amount="1234.00")
    assert opened("1234") is None
    shown = found("1234").text
    assert (order_no in shown, same in shown) == (True, True)


def test_transaction_ids_exceptions_merchants_and_channels_are_found(api, found, order_details):
    order_no, wrong = completed(api), number(api, cny_amount="70.00")
    assert order_no in found(order_details(order_no)["channel_reference"]).text
    api.play(wrong, "wrong_amount")
    exception = PaymentException.get()
    for text in (exception.reference, hundredths(exception.amount)):
        shown = found(text).text
        assert (wrong in shown, "Exceptions" in shown) == (True, True)
    merchant, channel = Merchant.get(Merchant.key == "demo"), Channel.get_by_id(2)
    assert found(merchant.name[:4].lower()).links[merchant.name] == "/console/merchant/demo"
    assert found(channel.name).links[channel.name] == "/console/channel/2"


def test_pages_are_found_in_both_languages_by_those_who_can_use_them(found, page, viewer):
    for text in ("balan", "余额"):
        assert "/console/ledger/" in found(text).links.values()
    assert found("payment link").links["New payment link"] == "/console/new-order/", "not in the menu"
    assert "New merchant" in found("new merchant").links
    assert "New merchant" not in page("search/?q=new merchant", client=viewer).links


def test_any_text_gets_a_page(console):
    for text in ("", "   ", "\u202e", "\x00", "%", "_", "'", '"', "<b>", "x" * 400, "1" * 300):
        assert console.get("/console/search/", query_string={"q": text}).status_code == 200, text
