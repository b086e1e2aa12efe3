"""The payer returns to the shop after the payment, with fields that any Standard Webhooks library verifies."""

import json
import re
import time
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from standardwebhooks import Webhook, WebhookVerificationError

from services.sandbox.seeding import CALLBACK_SECRETS
from tests.epay_shop import Shop
from tests.pages import BACK, CASHIER

SHOP = "https://shop.example/orders/{merchant_order_no}"
SECRET = CALLBACK_SECRETS["demo"]


@pytest.fixture
def template(flask):
    """`template(address)` sets where payers of the merchant `demo` return."""

    def put(address):
        flask("merchant", "page", "demo", "--return-url", address)

    put(SHOP)
    return put


@pytest.fixture
def back(http):
    """`back(order_no)`: where the payer is sent."""

    def go(order_no):
        answer = http("GET", f"{BACK}?order_no={order_no}")
        assert answer.status == 303
        return answer.headers["Location"]

    return go


@pytest.fixture
def paid(api):
    """`paid(merchant_order_no="A-1")`: the number of a completed deposit."""

    def pay(**fields):
        order_no = api.buy(**fields).data["order_no"]
        api.play(order_no, "success")
        return order_no

    return pay


def fields_of(address):
    return dict(parse_qsl(urlsplit(address).query, keep_blank_values=True))


def verified(fields, secret=SECRET):
    """Whether a Standard Webhooks library accepts a return."""
    headers = {"webhook-id": "order_no", "webhook-timestamp": "timestamp", "webhook-signature": "signature"}
    try:
        Webhook(secret).verify(
            f"{fields['status']}.{fields['merchant_order_no']}",
            {header: fields[name] for header, name in headers.items()},
            json_parse=False,
        )
    except WebhookVerificationError:
        return False
    return True


def test_the_payer_returns_with_the_orders_numbers_and_a_valid_signature(template, paid, back, reach):
    order_no = paid(merchant_order_no="A/1 甲")
    address = back(order_no)
    fields = fields_of(address)
    assert address.startswith("https://shop.example/orders/A%2F1%20%E7%94%B2?order_no=")
    assert list(fields) == ["order_no", "merchant_order_no", "status", "timestamp", "signature"]
    assert (fields["order_no"], fields["merchant_order_no"], fields["status"]) == (order_no, "A/1 甲", "completed")
    assert abs(int(fields["timestamp"]) - time.time()) < 60
    assert verified(fields)
    changed = {"order_no": "1", "merchant_order_no": "B", "status": "confirmed", "timestamp": "1"}
    for name, value in (changed | {"signature": "v1,QUJD"}).items():
        assert not verified(fields | {name: value}), name

    without_a_number = fields_of(back(paid()))
    assert without_a_number["merchant_order_no"] == ""
    assert verified(without_a_number)
    assert fields_of(back(reach("confirmed")))["status"] == "confirmed"


def test_a_number_that_could_stand_for_a_callback_or_another_order_is_not_signed(template, paid, back):
    event = json.dumps({"type": "order.completed", "data": {"order_no": "1"}})
    for number in (event, "confirmed.A-2", "completed.A-2"):
        order_no = paid(merchant_order_no=f"{int(time.time())}.{number}")
        assert back(order_no) == f"{CASHIER}?order_no={order_no}", number


def test_a_return_is_signed_with_both_secrets_while_one_rotates(template, paid, back, flask_json):
    new = flask_json("merchant", "rotate", "demo", "--callback", "--keep-hours", "1")["callback_secret"]
    fields = fields_of(back(paid()))
    assert len(fields["signature"].split(" ")) == 2
    assert verified(fields, SECRET)
    assert verified(fields, new)
    flask_json("merchant", "rotate", "demo", "--callback", "--keep-hours", "0")
    fields = fields_of(back(fields["order_no"]))
    assert not verified(fields, SECRET)
    assert not verified(fields, new)


def test_no_payer_returns_before_the_payment_is_proven(template, reach, back):
    for state in ("pending", "paid", "checking", "cancelled"):
        order_no = reach(state)
        assert back(order_no) == f"{CASHIER}?order_no={order_no}", state


def test_without_an_address_the_payer_stays_on_the_payment_page(paid, back, visit):
    order_no = paid()
    assert back(order_no) == f"{CASHIER}?order_no={order_no}"
    assert BACK not in visit(order_no).text


def test_an_unknown_order_returns_nowhere(template, http, api):
    for number in ("", "1", api.sell().data["order_no"]):
        answer = http("GET", f"{BACK}?order_no={number}")
        assert (answer.code, "Location" in answer.headers) == (40401, False)


ADDRESSES = {
    "https://shop.example": "https://shop.example?FIELDS",
    "https://shop.example/done?page=1&a": "https://shop.example/done?page=1&a&FIELDS",
    "https://shop.example/?status=x&o=1&order%5Fno=2": "https://shop.example/?o=1&FIELDS",
    "https://shop.example/?#/orders/{merchant_order_no}": "https://shop.example/?FIELDS#/orders/A-1",
    "https://shop.example/?n={merchant_order_no}#end": "https://shop.example/?n=A-1&FIELDS#end",
    "https://shop.example/中?文=1": "https://shop.example/%E4%B8%AD?%E6%96%87=1&FIELDS",
    "http://127.0.0.1:8080/{order_no}/x": "http://127.0.0.1:8080/NUMBER/x?FIELDS",
    "/sandbox/x": "/sandbox/x?FIELDS",
}


def test_an_address_keeps_its_own_query_and_fragment(template, paid, back):
    order_no = paid(merchant_order_no="A-1")
    for address, sent in ADDRESSES.items():
        template(address)
        location = back(order_no)
        signed = re.search("order_no=[^#]*&signature=[^#]*", location)[0]
        assert location == sent.replace("FIELDS", signed).replace("NUMBER", order_no)
        assert verified(fields_of(location))


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    number=st.text(min_size=1, max_size=40),
    merchants=st.text(st.characters(codec="utf-8", exclude_categories=["Cc"], exclude_characters="{"), max_size=40),
)
def test_no_number_leads_to_another_place(template, paid, http, number, merchants):
    answer = http("GET", f"{BACK}?{urlencode({'order_no': number, 'return_url': 'https://evil.example/'})}")
    assert (answer.code, "Location" in answer.headers) == (40401, False)
    order = paid(merchant_order_no=merchants)
    sent = urlsplit(http("GET", f"{BACK}?order_no={order}&return_url=https://evil.example/").headers["Location"])
    assert (sent.scheme, sent.netloc, sent.path.startswith("/orders/")) == ("https", "shop.example", True)
    assert fields_of(sent.geturl())["merchant_order_no"] == merchants


# --- orders of a shop at the epay gateway


@pytest.fixture
def shop(http, web_server, flask_json):
    """A shop at the gateway."""
    hosts = ("--host", "127.0.0.1", "--host", "localhost")
    return Shop(http, web_server, flask_json("epay", "enable", "demo", *hosts, "--type", "alipay=2"))


@pytest.fixture
def settings_of_app():
    return {"private_callbacks": True, "pages_per_address": 10_000, "requests_per_second": 10_000}


@pytest.fixture
def epay_paid(shop, api):
    """`epay_paid()`: the number of a completed payment of the shop."""

    def pay(**fields):
        number = shop.mapi(**fields)["trade_no"]
        api.play(number, "success")
        return number

    return pay


def test_an_epay_payer_returns_to_the_address_of_the_order_while_the_shop_has_that_host(
    template, shop, epay_paid, back, flask, visit
):
    number = epay_paid()
    location = back(number)
    assert location.startswith(f"{shop.return_url}&")
    assert shop.is_ours({name: value for name, value in fields_of(location).items() if name != "page"})
    flask("epay", "set", "demo", "--host", "localhost")
    assert back(number) == f"{CASHIER}?order_no={number}"
    assert BACK not in visit(number).text


def test_an_epay_payer_of_an_order_without_an_address_returns_to_the_merchants(template, epay_paid, back):
    location = back(epay_paid(return_url=None))
    assert location.startswith("https://shop.example/orders/SHOP-1?")
    assert verified(fields_of(location))


def test_an_epay_payer_does_not_return_before_the_order_is_completed(template, shop, api, flask, back):
    flask("channel", "set", 2, "--settlement-days", 1)
    number = shop.mapi()["trade_no"]
    api.play(number, "success")
    assert back(number) == f"{CASHIER}?order_no={number}"
