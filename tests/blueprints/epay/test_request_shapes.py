"""Shops' own request shapes at the epay gateway: placed, asked again, notified, queried, returned to."""

import html
import re
from decimal import Decimal
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest
from werkzeug import Response

from tests.blueprints.epay.shop_requests import APIS, PAGES, SHOPS
from tests.epay_shop import BROWSER
from tests.pages import BACK, CASHIER, CHOOSE, FORM


class Site:
    """A shop's server: it verifies notices as its plug-in does."""

    def __init__(self, shop, key, server):
        self.shop, self.key, self.address = shop, key, server.url_for("")
        self.notices, self.answers = [], []
        server.expect_request(shop.notify).respond_with_handler(self._notified)

    def _notified(self, request):
        self.notices.append((request.method, parse_qsl(request.query_string.decode(), keep_blank_values=True)))
        answer = "success" if self.shop.accepts(dict(self.notices[-1][1]), self.key) else "fail"
        self.answers.append(answer)
        return Response(answer)

    @property
    def notice(self):
        """The fields of the only notice, each sent once."""
        ((method, pairs),) = self.notices
        assert method == "GET"
        assert len(dict(pairs)) == len(pairs)
        return dict(pairs)


@pytest.fixture
def account(flask_json):
    """The gateway of the merchant `demo`: its pid and key."""
    types = ("--type", "alipay=2:alipay", "--type", "wxpay=2:wxpay")
    return flask_json("epay", "enable", "demo", "--host", "localhost", *types)


@pytest.fixture
def site(account, web_server):
    """`site("dujiaoka")`: that shop's server."""
    return lambda name: Site(SHOPS[name], account["key"], web_server)


@pytest.fixture
def send(http, account):
    """`send(site)`: the response to its plug-in's request; `money="9"` replaces a field, `later` one that is signed."""

    def request(site, later=(), **other):
        fields = site.shop.asks(int(account["pid"]), account["key"], site.address.rstrip("/"), **other) | dict(later)
        if site.shop.method == "POST":
            return http("POST", site.shop.path, urlencode(fields).encode(), FORM | BROWSER)
        return http("GET", f"{site.shop.path}?{urlencode(fields)}", b"", BROWSER)

    return request


@pytest.fixture
def open_page(http):
    """`open_page(answer)`: the payer's page to which a response leads, with the choice made, and its order number."""

    def follow(address):
        parts = urlsplit(address)
        page = http("GET", f"{parts.path}?{parts.query}")
        number = dict(parse_qsl(parts.query))["order_no"]
        choice = re.search(r'name="choice" value="([^"]+)"', page.text)
        if choice is None:
            return page.text, number
        form = urlencode({"order_no": number, "choice": choice[1]}).encode()
        return follow(http("POST", CHOOSE, form, FORM).headers["Location"])

    def opened(answer):
        return follow(answer.headers["Location"] if answer.status == 303 else answer.json["payurl"])

    return opened


@pytest.fixture
def paid(api, send, open_page, due):
    """`paid(site)`: the number of its payment, which was made and of which the shop was notified."""

    def pay(site):
        _, number = open_page(send(site))
        api.play(number, "success")
        due.callbacks()
        return number

    return pay


# --- payments


@pytest.mark.parametrize("name", PAGES)
def test_a_payers_browser_gets_from_the_shop_to_the_page_of_its_payment(name, site, send, open_page):
    shop = site(name)
    answer = send(shop)
    assert (answer.status, urlsplit(answer.headers["Location"]).path) == (303, CASHIER)
    page, _ = open_page(answer)
    assert f"¥{Decimal(shop.shop.fields['money']):.2f}" in html.unescape(page)


@pytest.mark.parametrize("name", APIS)
def test_a_shops_server_gets_an_integer_code_and_absolute_addresses(name, site, send):
    answer = send(site(name)).json
    assert (type(answer["code"]), answer["code"], type(answer["trade_no"])) == (int, 1, str)
    assert urlsplit(answer["payurl"]).scheme in ("http", "https")
    assert answer["trade_no"] in answer["payurl"]


@pytest.mark.parametrize("name", SHOPS)
def test_the_same_request_again_means_the_same_payment(name, site, send, open_page):
    shop = site(name)
    _, number = open_page(send(shop))
    page, again = open_page(send(shop))
    assert (again, "choice" in page) == (number, False)


@pytest.mark.usefixtures("clock")  # both views of the page show the same time left
@pytest.mark.parametrize("name", SHOPS)
@pytest.mark.parametrize("change", ["another amount", "a changed amount"])
def test_no_other_amount_can_be_placed_under_the_same_number(name, change, site, send, open_page):
    shop = site(name)
    page, number = open_page(send(shop))
    refused = send(shop, money="1.00") if change == "another amount" else send(shop, later={"money": "1.00"})
    if name in PAGES:
        assert (refused.status, "Location" in refused.headers) == (400, False)
    else:
        assert (refused.status, refused.code < 0, type(refused.code)) == (200, True, int)
    assert open_page(send(shop)) == (page, number)


# --- notices


@pytest.mark.parametrize("name", SHOPS)
def test_the_plug_in_accepts_the_notice(name, site, paid):
    shop = site(name)
    paid(shop)
    assert shop.answers == ["success"]
    assert "" not in shop.notice.values()
    facts = {each: shop.notice.get(each) for each in ("out_trade_no", "money", "trade_status", "name")}
    assert facts == {
        "out_trade_no": shop.shop.number,
        "money": f"{Decimal(shop.shop.fields['money']):.2f}",
        "trade_status": "TRADE_SUCCESS",
        "name": shop.shop.fields["name"].format(number=shop.shop.number),
    }
    assert shop.notice["type"] in ([shop.shop.fields["type"]] if "type" in shop.shop.fields else ["alipay", "wxpay"])


@pytest.mark.parametrize("name", SHOPS)
def test_no_notice_of_another_amount_is_sent(name, api, site, send, open_page, due):
    shop = site(name)
    _, number = open_page(send(shop))
    api.play(number, "wrong_amount")
    due.callbacks()
    assert shop.notices == []


@pytest.mark.parametrize("name", SHOPS)
def test_the_payer_returns_to_the_shops_address_with_fields_that_it_verifies(name, site, paid, http, account):
    shop = site(name)
    back = http("GET", f"{BACK}?order_no={paid(shop)}").headers["Location"]
    before = shop.shop.fields["return_url"].format(site=shop.address.rstrip("/"), number=shop.shop.number)
    assert back.startswith(before)
    added = dict(parse_qsl(back.removeprefix(before).lstrip("?&"), keep_blank_values=True))
    assert shop.shop.accepts(added, account["key"])


# --- queries: sub2api asks


@pytest.fixture
def query(http, account):
    """`query(act="order", ...)`: the response to the form that sub2api's server posts, with the key in it."""
    own = {"pid": account["pid"], "key": account["key"]}
    return lambda path="/api.php", **fields: http("POST", path, urlencode(own | fields).encode(), FORM).json


def test_the_query_of_sub2api_names_the_act_in_its_form(site, send, query):
    shop = site("sub2api")
    placed = send(shop).json
    found = query(act="order", out_trade_no=shop.shop.number)
    types = {name: type(found[name]) for name in ("code", "status", "money", "trade_no")}
    assert types == {"code": int, "status": int, "money": str, "trade_no": str}
    assert (found["code"], found["status"], found["money"]) == (1, 0, "12.50")
    assert (found["trade_no"], found.get("trade_status")) == (placed["trade_no"], None)


def test_a_paid_order_has_status_1_and_the_amount_as_text(site, paid, query):
    shop = site("sub2api")
    number = paid(shop)
    found = query(act="order", out_trade_no=shop.shop.number)
    assert (found["status"], found["money"], found["trade_no"]) == (1, "12.50", number)
    assert found["trade_status"] == "TRADE_SUCCESS"


def test_sub2api_is_told_that_an_order_does_not_exist(query):
    found = query(act="order", out_trade_no="unknown")
    assert (found["code"], found.get("status")) == (-1, None)


def test_the_refund_of_sub2api_is_refused_in_json(site, paid, query):
    shop = site("sub2api")
    paid(shop)
    refused = query("/api.php?act=refund", out_trade_no=shop.shop.number, money="12.50")
    assert refused["code"] < 0
    assert refused["msg"]
