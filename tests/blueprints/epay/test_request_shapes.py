"""Shops' own request shapes at the epay gateway: placed, asked again, notified, queried, returned to."""

import html
import re
from decimal import Decimal
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest
from werkzeug import Response

from tests.blueprints.epay.shop_requests import PAGES, SHOPS
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


@pytest.mark.usefixtures("clock")  # all views of the page show the same time left
@pytest.mark.parametrize("name", SHOPS)
def test_a_plug_in_places_a_payment_accepts_its_notice_and_gets_its_payer_back(
    name, site, send, open_page, api, due, http, account
):
    site = site(name)
    shop = site.shop
    amount = f"{Decimal(shop.fields['money']):.2f}"
    answer = send(site)
    if name in PAGES:
        assert (answer.status, urlsplit(answer.headers["Location"]).path) == (303, CASHIER)
    else:
        made = answer.json
        assert (type(made["code"]), made["code"], type(made["trade_no"])) == (int, 1, str)
        assert urlsplit(made["payurl"]).scheme in ("http", "https")
        assert made["trade_no"] in made["payurl"]
    page, number = open_page(answer)
    assert f"¥{amount}" in html.unescape(page)

    for refused in (send(site, money="1.00"), send(site, later={"money": "1.00"})):  # under the same number
        if name in PAGES:
            assert (refused.status, "Location" in refused.headers) == (400, False)
        else:
            assert (refused.status, refused.code < 0, type(refused.code)) == (200, True, int)
    assert open_page(send(site)) == (page, number)

    api.play(number, "success")
    due.callbacks()
    assert site.answers == ["success"]
    notice = site.notice
    assert "" not in notice.values()
    assert {each: notice.get(each) for each in ("out_trade_no", "money", "trade_status", "name")} == {
        "out_trade_no": shop.number,
        "money": amount,
        "trade_status": "TRADE_SUCCESS",
        "name": shop.fields["name"].format(number=shop.number),
    }
    assert notice["type"] in ([shop.fields["type"]] if "type" in shop.fields else ["alipay", "wxpay"])

    back = http("GET", f"{BACK}?order_no={number}").headers["Location"]
    before = shop.fields["return_url"].format(site=site.address.rstrip("/"), number=shop.number)
    assert back.startswith(before)
    assert shop.accepts(dict(parse_qsl(back.removeprefix(before).lstrip("?&"), keep_blank_values=True)), account["key"])


def test_the_server_of_sub2api_queries_its_payment_by_a_form_with_the_key_in_it(site, send, api, http, account):
    def query(path="/api.php", **fields):
        return http(
            "POST", path, urlencode({"pid": account["pid"], "key": account["key"]} | fields).encode(), FORM
        ).json

    found = query(act="order", out_trade_no="unknown")
    assert (found["code"], found.get("status")) == (-1, None)
    site = site("sub2api")
    placed = send(site).json
    found = query(act="order", out_trade_no=site.shop.number)
    types = {name: type(found[name]) for name in ("code", "status", "money", "trade_no")}
    assert types == {"code": int, "status": int, "money": str, "trade_no": str}
    assert (found["code"], found["status"], found["money"]) == (1, 0, "12.50")
    assert (found["trade_no"], found.get("trade_status")) == (placed["trade_no"], None)
    api.play(placed["trade_no"], "success")
    found = query(act="order", out_trade_no=site.shop.number)
    assert (found["status"], found["money"], found["trade_no"]) == (1, "12.50", placed["trade_no"])
    assert found["trade_status"] == "TRADE_SUCCESS"
    refused = query("/api.php?act=refund", out_trade_no=site.shop.number, money="12.50")
    assert refused == {"code": -1, "msg": "Refunds are not enabled for this merchant"}
