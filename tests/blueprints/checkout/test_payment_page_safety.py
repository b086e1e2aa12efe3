"""The page behind `pay_url` reveals nothing and runs nothing: headers, hostile texts, unknown orders."""

import re
from urllib.parse import quote

import pytest

from tests.pages import CASHIER, CLAIM, FORM, STATUS, Seen

STATES = (
    *("pending", "paid", "confirmed", "completed", "cancelled"),
    *("checking", "expired", "late", "refunded"),
)


@pytest.mark.parametrize("path", [f"{CASHIER}?order_no=" + "{}", f"{CASHIER}?order_no=1" + "{}"])
def test_a_page_has_a_strict_policy_and_is_not_cached(path, api, http):
    headers = http("GET", path.format(api.buy().data["order_no"])).headers
    policy = dict(part.strip().split(" ", 1) for part in headers["Content-Security-Policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["frame-ancestors"] == "'none'"
    assert policy["base-uri"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == policy["form-action"] == "'self'"
    assert "unsafe" not in headers["Content-Security-Policy"]
    assert headers["Content-Type"] == "text/html; charset=utf-8"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] in ("no-referrer", "same-origin", "strict-origin")
    assert "no-store" in headers["Cache-Control"]
    assert "Accept-Language" in headers["Vary"]
    assert headers["X-Service-Version"]


def test_a_page_loads_nothing_from_elsewhere_and_has_nothing_inline(reach, visit, http):
    for state in STATES:
        answer = visit(reach(state))
        page = Seen(answer.text)
        assert page.inline == []
        assert not {"style", "iframe", "object"} & set(page.tags)
        assert not re.search(r"<script(?![^>]*src=)", answer.text)
        assert all(re.match(r"/|data:image/png;base64,", address) for address in page.addresses), page.addresses
        for address in page.addresses:
            if "/static/" in address:
                assert http("GET", address).status == 200


HOSTILE = ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "{{ 7*7 }}", "100% %(merchant)s %s"]


def test_a_hostile_text_is_only_a_text(api, flask, visit):
    def page_with(text):
        flask("merchant", "set", "demo", "--name", text)
        flask("channel", "set", 3, "--config", f"payee={text}", "--config", f"note={text}")
        order_no = api.buy(channel=3, customer_name=text, merchant_order_no=text).data["order_no"]
        return Seen(visit(order_no).text)

    harmless = page_with("harmless").tags
    for hostile in (*HOSTILE, "</h1><b>"):
        page = page_with(hostile)
        assert page.text.count(hostile) == 3
        assert (page.tags, page.inline) == (harmless, [])


def test_the_customer_and_the_merchants_own_number_are_not_on_a_public_page(api, visit):
    order_no = api.buy(customer_name="李四小明", merchant_order_no="SECRET-77").data["order_no"]
    assert "李四小明" not in visit(order_no).text
    assert "SECRET-77" not in visit(order_no).text


def test_an_unknown_order_has_a_page_with_a_message(visit, http):
    for order_no in ("", "1", "20260101" + "0" * 16, "x' OR 1=1 --", "\x00", "中文", "9" * 5000):
        for language, words in (("en", "Order not found"), ("zh", "未找到订单")):
            answer = visit(quote(order_no), language)
            assert (answer.status, answer.headers["Content-Type"]) == (404, "text/html; charset=utf-8"), order_no
            assert words in Seen(answer.text).text
        status = http("GET", f"{STATUS}?order_no={quote(order_no)}")
        assert (status.status, status.code, status.data) == (404, 40401, None)


def test_a_withdrawal_or_a_missing_number_has_no_payment_page(api, visit, http):
    assert http("GET", CASHIER).status == 404
    assert http("GET", STATUS).code == 40401
    assert http("POST", CLAIM, b"", FORM).code == 40401
    order_no = api.sell().data["order_no"]
    assert visit(order_no).status == 404
    assert http("GET", f"{STATUS}?order_no={order_no}").code == 40401
    assert http("POST", CLAIM, f"order_no={order_no}".encode(), FORM).code == 40401
    assert api.status(order_no) == "pending"
